"""The work of a sweep: what is known already, what to solve next, and what it all comes to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import replace
from pathlib import Path

from .. import __version__
from ..core.curve import BUDGET_FREE, Curve, Finding, Point
from ..core.digest import graph_digest, problem_digest
from ..core.errors import LimitError, VerificationError
from ..core.events import Watch
from ..core.points import recertified, solve_point
from ..core.result import Status, Stop
from ..core.strategies import HEURISTICS, STRATEGIES
from ..core.units import format_bytes
from ..io.sweep_json import Baseline, Sweep, SweepRow
from ..io.sweep_points import PointStore, Stored, point_key
from .local_crew import BROKEN, LocalCrew
from .options import SolvingRequest
from .pipeline import Prepared, what_binds
from .sweep_tasks import Solved, Task, solve_beside, solve_task

SLOW = frozenset(STRATEGIES) - frozenset(HEURISTICS)
"""Strategies that take all the time they get: who stops a sweep early has the others."""
SMALLEST = "min-budget"
"""What the search for the smallest budget is stored as."""
_GLANCE = 0.2
"""Seconds between two looks at what the workers do, and whether the user wants them to stop."""


class SweepRun:
    """One curve per strategy, filled from the store and by tasks."""

    def __init__(self, prepared: Prepared, solving: SolvingRequest, store: PointStore, *, fresh: bool) -> None:
        self.prepared = prepared
        self.solving = solving
        self.curves: dict[str, Curve] = {}
        self.budgets: dict[int, str] = {}
        self._store = store
        self._fresh = fresh
        self._digest = problem_digest(prepared.problem)
        self._origin: dict[tuple[str, int], str] = {}
        self._smallest: Finding | None = None

    def plan(self, strategies: Sequence[str], budgets: Mapping[int, str]) -> None:
        """Lay out the points, and take from the store what it has."""
        self.budgets = dict(sorted(budgets.items()))
        ideal = self.prepared.problem.ideal_cost
        for strategy in strategies:
            gap = self.solving.settings_for(strategy).gap
            curve = Curve(self.budgets, ideal_cost=ideal, gap=gap, budget_free=strategy in BUDGET_FREE)
            self.curves[strategy] = curve
            if self._smallest is not None and strategy == "auto":
                curve.add_schedule(self._smallest)
            for budget in self.budgets:
                self._begin(strategy, curve, budget)

    def _begin(self, strategy: str, curve: Curve, budget: int) -> None:
        floor = self.prepared.floor
        if floor.bytes > budget and self.prepared.keep_all.peak > budget:
            reason = f"no schedule fits: {format_bytes(floor.bytes)} needed {what_binds(floor)}"
            curve.add(Finding(budget, Status.INFEASIBLE, Stop.FINISHED, bound=self.prepared.problem.ideal_cost, reason=reason))
            return
        stored = self._stored(strategy, budget)
        if stored is not None and stored.serves(self.solving.time_limit):
            curve.add(stored.finding)
            self._origin[strategy, budget] = "stored"
        elif stored is not None and stored.finding.sequence is not None:
            curve.add_schedule(stored.finding)

    def find_smallest(self, watch: Watch) -> int:
        """The smallest budget for which a schedule is found: where a curve begins. The proven limit, if nothing better than the peak is."""
        stored = self._stored(SMALLEST, 0)
        if stored is None or not stored.serves(self.solving.time_limit):
            from ..core.strategies.smallest import find_smallest

            smallest = find_smallest(self.prepared.problem, self.solving.settings_for("auto"), watch)
            ideal = self.prepared.problem.ideal_cost
            finding = Finding(
                0,
                Status.FEASIBLE,
                smallest.stop,
                smallest.sequence,
                bound=ideal,
                seconds=watch.elapsed,
                found_by=f"{SMALLEST}: {smallest.found_by}",
            )
            stored = Stored(SMALLEST, recertified(self.prepared.problem, finding), self.solving.time_limit)
            if smallest.stop is not Stop.INTERRUPTED:
                self._store.keep(self._key(SMALLEST, 0), stored)
        self._smallest = replace(stored.finding, budget=stored.finding.peak)
        found = self._smallest.budget
        return found if found < self.prepared.keep_all.peak else self.prepared.floor.bytes

    def next_task(self, running: Sequence[Task] = ()) -> Task | None:
        """Of the first strategy that has one, those that take long last; None if all are done or wait for others."""
        for strategy, curve in sorted(self.curves.items(), key=lambda entry: entry[0] in SLOW):
            budget = curve.next_budget([task.budget for task in running if task.strategy == strategy])
            if budget is not None:
                settings = replace(self.solving.settings_for(strategy), known=curve.known(budget))
                return Task(strategy, budget, settings, self.solving.time_limit)
        return None

    def finish(self, task: Task, solved: Solved) -> None:
        """Take in what a task found; only a run that was not broken off, and in which nothing failed, is kept for later."""
        finding = solved.finding
        self.curves[task.strategy].add(finding)
        self._origin[task.strategy, task.budget] = "solved"
        if finding.stop is not Stop.INTERRUPTED and not solved.warnings:
            self._store.keep(self._key(task.strategy, task.budget), Stored(task.strategy, finding, task.time_limit))

    @property
    def total(self) -> int:
        return len(self.curves) * len(self.budgets)

    @property
    def settled(self) -> int:
        return sum(curve.settled(budget) for curve in self.curves.values() for budget in self.budgets)

    def baselines(self, watch: Watch) -> tuple[Baseline, ...]:
        """Strategies whose schedule is the same at every budget: points of their own, whatever was asked for."""
        found: list[Baseline] = []
        problem = self.prepared.problem
        for strategy in BUDGET_FREE:
            if watch.interrupted():
                break
            finding = solve_point(problem, strategy, self.solving.settings_for(strategy), watch)
            if finding.sequence is not None:
                found.append(Baseline(strategy, finding.peak, finding.cost, self._overhead(finding.cost), finding.recomputed))
        return tuple(found)

    def sweep(self, baselines: tuple[Baseline, ...], *, interrupted: bool, outputs: Sequence[Path]) -> Sweep:
        prepared = self.prepared
        return Sweep(
            status="interrupted" if interrupted else "ok",
            name=prepared.graph.name,
            source=prepared.loaded.source,
            graph_format=prepared.loaded.format,
            digest=graph_digest(prepared.graph),
            operations=len(prepared.graph.operations),
            cost_model=prepared.costs.model,
            cost_unit=prepared.costs.unit,
            ideal_cost=prepared.problem.ideal_cost,
            keep_all_peak_bytes=prepared.keep_all.peak,
            smallest_budget_bytes=prepared.floor.bytes,
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
            overhead=self._overhead(best.cost) if best else None,
            bound=point.bound if best else None,
            gap=point.gap,
            bound_scope=point.bound_scope if best else None,
            peak_bytes=best.peak if best else None,
            recomputed=best.recomputed if best else None,
            found_by=best.found_by if best else "",
            found_at_bytes=best.budget if best else None,
            origin=self._origin.get((strategy, point.budget), "open" if is_open else "implied"),
            seconds=round(solved.seconds, 6) if solved else 0.0,
            note=note,
        )

    def _overhead(self, cost: float) -> float:
        ideal = self.prepared.problem.ideal_cost
        return cost / ideal - 1 if ideal > 0 else 0.0

    def _stored(self, strategy: str, budget: int) -> Stored | None:
        """A stored point is believed only as far as its schedule can be certified here and now."""
        stored = None if self._fresh else self._store.find(self._key(strategy, budget))
        if stored is None:
            return None
        try:
            return replace(stored, finding=recertified(self.prepared.problem.with_budget(stored.finding.budget), stored.finding))
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
        _take(run, task, solve_task(run.prepared.problem, task, begin(task)), interrupted)


def run_in_workers(
    run: SweepRun, count: int, interrupted: Callable[[], bool], tell: Callable[[Sequence[Task]], None], warn: Callable[[str], None]
) -> None:
    """Several points at a time. The kernels are compiled here first, or every worker would do it."""
    if "auto" in run.curves:
        from ..core.search.warm import warm_up

        warm_up()
    problem = run.prepared.problem
    crew = LocalCrew(count)
    running: dict[Future[Solved], Task] = {}
    told = False
    try:
        while True:
            while len(running) < count and not interrupted() and (task := run.next_task(list(running.values()))) is not None:
                running[crew.submit(solve_beside, (problem, task))] = task
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
                crew.stop_soon()
    finally:
        crew.close()


def _result(future: Future[Solved], task: Task) -> Solved:
    try:
        return future.result()
    except BROKEN:
        raise LimitError(
            f"a worker died while solving {task.strategy} at {format_bytes(task.budget)}, perhaps for want of memory; finished points are "
            "kept: run the same command again, with fewer --workers"
        ) from None


def _take(run: SweepRun, task: Task, solved: Solved, interrupted: Callable[[], bool]) -> None:
    if not (interrupted() and solved.finding.sequence is None):
        run.finish(task, solved)
