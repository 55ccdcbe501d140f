"""Run a sweep: load stored points, choose what to solve next, combine the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path

from ... import __version__
from ...api.pricing import PricedGraph, what_binds
from ...api.solving import SolvingOptions
from ...core.baselines import BASELINES
from ...core.engine.strategies import STRATEGIES
from ...core.errors import LimitError, VerificationError
from ...core.events import Watch
from ...core.model.digest import graph_digest, problem_digest
from ...core.model.units import format_bytes
from ...core.result import Result, Status, Stop
from ...core.studies.curve import BUDGET_FREE, Curve, Point
from ...core.studies.points import recertified, solve_point
from ...io.formats.sweep_json import Baseline, Sweep, SweepRow
from ...io.formats.sweep_points import PointStore, Stored, point_key
from .sweep_tasks import Solved, Task, solve_beside, solve_task
from .worker_pool import BROKEN, WorkerPool

SLOW = frozenset(STRATEGIES) - frozenset(BASELINES)
"""Strategies that use their whole time limit. They run last, so that a sweep that is stopped early has the others."""
SMALLEST = "min-budget"
"""The name under which the result of the search for the smallest budget is stored."""
_GLANCE = 0.2
"""Seconds between two checks of the workers and of Ctrl-C."""


class SweepRun:
    """One curve per strategy, filled from stored points and by tasks."""

    def __init__(self, priced: PricedGraph, solving: SolvingOptions, store: PointStore, *, fresh: bool) -> None:
        self.priced = priced
        self.solving = solving
        self.curves: dict[str, Curve] = {}
        self.budgets: dict[int, str] = {}
        self._store = store
        self._fresh = fresh
        self._digest = problem_digest(priced.problem)
        self._origin: dict[tuple[str, int], str] = {}
        self._smallest: Result | None = None

    def plan(self, strategies: Sequence[str], budgets: Mapping[int, str]) -> None:
        """Create the points, and load those that are stored."""
        self.budgets = dict(sorted(budgets.items()))
        ideal = self.priced.problem.ideal_cost
        for strategy in strategies:
            gap = self.solving.settings_for(strategy).gap
            curve = Curve(self.budgets, ideal_cost=ideal, gap=gap, budget_free=strategy in BUDGET_FREE)
            self.curves[strategy] = curve
            if self._smallest is not None and strategy == "auto":
                curve.add_schedule(self._smallest.peak_bytes, self._smallest)
            for budget in self.budgets:
                self._begin(strategy, curve, budget)

    def _begin(self, strategy: str, curve: Curve, budget: int) -> None:
        floor = self.priced.floor
        if floor.bytes > budget and self.priced.keep_all.peak > budget:
            reason = f"no schedule fits: {format_bytes(floor.bytes)} needed {what_binds(floor)}"
            curve.add(budget, Result(Status.INFEASIBLE, Stop.FINISHED, reason=reason))
            return
        stored = self._stored(strategy, budget)
        if stored is not None and stored.serves(self.solving.time_limit):
            curve.add(budget, stored.result)
            self._origin[strategy, budget] = "stored"
        elif stored is not None and stored.result.sequence is not None:
            curve.add_schedule(budget, stored.result)

    def find_smallest(self, watch: Watch) -> int:
        """The smallest budget for which a schedule is found, where a curve starts; the proven limit if none is below the peak."""
        stored = self._stored(SMALLEST, 0)
        if stored is None or not stored.serves(self.solving.time_limit):
            from ...core.studies.smallest import find_smallest

            smallest = find_smallest(self.priced.problem, self.solving.settings_for("auto"), watch)
            found = Result(
                Status.FEASIBLE,
                smallest.stop,
                smallest.sequence,
                seconds=watch.elapsed,
                provenance={"found_by": f"{SMALLEST}: {smallest.found_by}"},
            )
            stored = Stored(SMALLEST, 0, recertified(self.priced.problem, found), self.solving.time_limit)
            if smallest.stop is not Stop.INTERRUPTED:
                self._store.keep(self._key(SMALLEST, 0), stored)
        self._smallest = stored.result
        peak = self._smallest.peak_bytes
        return peak if peak < self.priced.keep_all.peak else self.priced.floor.bytes

    def next_task(self, running: Sequence[Task] = ()) -> Task | None:
        """The next task of the first strategy that has one, slow strategies last; None if all are done or wait for others."""
        for strategy, curve in sorted(self.curves.items(), key=lambda entry: entry[0] in SLOW):
            budget = curve.next_budget([task.budget for task in running if task.strategy == strategy])
            if budget is not None:
                settings = replace(self.solving.settings_for(strategy), known=curve.known(budget))
                return Task(strategy, budget, settings, self.solving.time_limit)
        return None

    def finish(self, task: Task, solved: Solved) -> None:
        """Add the result of a task. It is stored only if the run was not interrupted and no part of it failed."""
        result = solved.result
        self.curves[task.strategy].add(task.budget, result)
        self._origin[task.strategy, task.budget] = "solved"
        if result.stop is not Stop.INTERRUPTED and not solved.warnings:
            self._store.keep(self._key(task.strategy, task.budget), Stored(task.strategy, task.budget, result, task.time_limit))

    @property
    def total(self) -> int:
        return len(self.curves) * len(self.budgets)

    @property
    def settled(self) -> int:
        return sum(curve.settled(budget) for curve in self.curves.values() for budget in self.budgets)

    def baselines(self, watch: Watch) -> tuple[Baseline, ...]:
        """Strategies whose schedule is the same at every budget: one point each, whatever budgets were asked for."""
        found: list[Baseline] = []
        problem = self.priced.problem
        for strategy in BUDGET_FREE:
            if watch.interrupted():
                break
            result = solve_point(problem, strategy, self.solving.settings_for(strategy), watch)
            if result.certificate is not None:
                found.append(Baseline(strategy, result.peak_bytes, result.cost, result.overhead, result.recomputed))
        return tuple(found)

    def sweep(self, baselines: tuple[Baseline, ...], *, interrupted: bool, outputs: Sequence[Path]) -> Sweep:
        priced = self.priced
        return Sweep(
            status="interrupted" if interrupted else "ok",
            name=priced.graph.name,
            source=priced.loaded.source,
            graph_format=priced.loaded.format,
            digest=graph_digest(priced.graph),
            operations=len(priced.graph.operations),
            cost_model=priced.costs.model,
            cost_unit=priced.costs.unit,
            ideal_cost=priced.problem.ideal_cost,
            keep_all_peak_bytes=priced.keep_all.peak,
            smallest_budget_bytes=priced.floor.bytes,
            strategies=tuple(self.curves),
            rows=tuple(self._row(strategy, curve.at(budget)) for strategy, curve in self.curves.items() for budget in self.budgets),
            baselines=baselines,
            outputs=tuple(map(str, outputs)),
        )

    def _row(self, strategy: str, point: Point) -> SweepRow:
        best, solved = point.schedule, point.solved
        is_open = not self.curves[strategy].settled(point.budget)
        note = ""
        if is_open:
            note = "not solved yet"
        elif best is None and solved is not None:
            note = solved.reason
        elif best is None:
            note = "smaller than a budget at which nothing fits" if point.status is Status.INFEASIBLE else "its schedule does not fit"
        return SweepRow(
            strategy=strategy,
            budget=self.budgets[point.budget],
            budget_bytes=point.budget,
            status=point.status.value,
            fits=best is not None,
            cost=best.cost if best else None,
            overhead=best.overhead if best else None,
            bound=point.bound if best else None,
            gap=point.gap,
            bound_scope=point.bound_scope if best else None,
            peak_bytes=best.peak_bytes if best else None,
            recomputed=best.recomputed if best else None,
            found_by=best.found_by if best else "",
            found_at_bytes=point.found_at,
            origin=self._origin.get((strategy, point.budget), "open" if is_open else "implied"),
            seconds=round(solved.seconds, 6) if solved else 0.0,
            note=note,
        )

    def _stored(self, strategy: str, budget: int) -> Stored | None:
        """A stored point is used only if its schedule can be certified again."""
        stored = None if self._fresh else self._store.find(self._key(strategy, budget))
        if stored is None:
            return None
        try:
            problem = self.priced.problem if strategy == SMALLEST else self.priced.problem.with_budget(stored.budget)
            return replace(stored, result=recertified(problem, stored.result))
        except VerificationError:
            return None

    def _key(self, strategy: str, budget: int) -> str:
        settings = self.solving.settings_for("auto" if strategy == SMALLEST else strategy)
        options: dict[str, str | int | float | None] = {
            "version": __version__,
            "solver": settings.solver,
            "formulation": settings.formulation,
            "gap": settings.gap,
            "order": settings.order,
            "threads": settings.threads,
            "seed": settings.seed,
            "iterations": settings.iterations,
        }
        return point_key(self._digest, strategy, budget, options)


def run_here(run: SweepRun, interrupted: Callable[[], bool], begin: Callable[[Task], Watch]) -> None:
    """All points, one after the other, in this process."""
    while not interrupted() and (task := run.next_task()) is not None:
        _take(run, task, solve_task(run.priced.problem, task, begin(task)), interrupted)


def run_in_workers(
    run: SweepRun, count: int, interrupted: Callable[[], bool], tell: Callable[[Sequence[Task]], None], warn: Callable[[str], None]
) -> None:
    """Several points at a time. The kernels are compiled first, because otherwise every worker would compile them."""
    if "auto" in run.curves:
        from ...core.search.warm import warm_up

        warm_up()
    problem = run.priced.problem
    pool = WorkerPool(count)
    running: dict[Future[Solved], Task] = {}
    told = False
    try:
        while True:
            while len(running) < count and not interrupted() and (task := run.next_task(list(running.values()))) is not None:
                running[pool.submit(solve_beside, (problem, task))] = task
            if not running:
                return
            tell(list(running.values()))
            done, _ = wait(running, timeout=_GLANCE, return_when=FIRST_COMPLETED)
            for future in done:
                task = running.pop(future)
                solved = _result(future, task)
                for warning in solved.warnings:
                    warn(warning)
                _take(run, task, solved, interrupted)
            if interrupted() and not told:
                told = True
                pool.stop_soon()
    finally:
        pool.close()


def _result(future: Future[Solved], task: Task) -> Solved:
    try:
        return future.result()
    except BROKEN:
        raise LimitError(
            f"a worker process died while solving {task.strategy} at {format_bytes(task.budget)}, perhaps because memory ran out; finished "
            "points are kept: run the same command again with fewer --workers"
        ) from None


def _take(run: SweepRun, task: Task, solved: Solved, interrupted: Callable[[], bool]) -> None:
    if not (interrupted() and solved.result.sequence is None):
        run.finish(task, solved)
