"""The smallest budget for which a schedule is found, and a proven limit below which none exists.

From above: an order of low peak, then what `solve` does where nothing fits: baselines, and descents from the schedule of the lowest peak to
lower ones (`core/engine/workers/descent.py`), for the proven limit as the budget. From below: the values that must be in memory
together; for the given order and small graphs also a MILP.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..engine.auto import lower_peaks
from ..engine.exact import fits_in_time, smallest_peak
from ..events import Event, Watch
from ..milp.stages import liveness_entries, repeated_runs
from ..model.floors import Floor, feasibility_floor, least_memory
from ..model.problem import Problem
from ..model.transforms.permute import in_original, permuted
from ..model.units import format_bytes
from ..params import PARAMS
from ..result import Scope, Stop
from ..schedule.schedule import expand
from ..schedule.sequence import profile
from ..schedule.simulate import simulate
from ..search.order import find_order
from ..search.splice import Annealing, anneal_sequence
from ..search.warm import warm_up_before
from ..settings import Order, Settings


@dataclass(frozen=True, slots=True)
class Smallest:
    """A schedule, the memory it needs, and the memory every schedule needs."""

    sequence: tuple[int, ...]
    budget: int
    """Bytes, everything included, with the memory model of the problem."""
    found_by: str
    limit: Floor
    scope: Scope
    """The limit holds for `any` schedule, or for those in the given `order` that recompute an operation at most twice per stage."""
    stop: Stop


def find_smallest(problem: Problem, settings: Settings, watch: Watch) -> Smallest:
    """Search until the limit is reached, all descents are done, or the time limit is reached. `settings.order` says whether the order may
    change."""
    if problem.count:
        warm_up_before(watch)
    work = _Smallest(problem, settings, watch)
    if problem.count:
        work.run()
    stop = Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired and not work.proven else Stop.FINISHED
    return Smallest(work.best, work.budget, work.found_by, work.limit, work.scope, stop)


class _Smallest:
    """The best schedule so far and the best limit, and the phases that improve them."""

    def __init__(self, problem: Problem, settings: Settings, watch: Watch) -> None:
        self.problem = problem
        self.settings = settings
        self.watch = Watch(watch.time_limit, self._tell, watch.interrupted, watch.started, undivided=settings.iterations is not None)
        self._listener = watch.on_event
        self.limit, self.scope = least_memory(problem), Scope.ANY
        self.given = tuple(range(problem.count))
        self.best, self.found_by = self.given, "keep-all"
        self.budget = taken(problem, self.given)
        self.model_budget = profile(problem, self.given).peak
        """The same without computing in place, which the search ignores: the search must get below this."""

    @property
    def order(self) -> tuple[int, ...]:
        """Of first computations in the best schedule."""
        return tuple(dict.fromkeys(self.best))

    @property
    def proven(self) -> bool:
        return self.budget <= self.limit.bytes

    @property
    def done(self) -> bool:
        return self.proven or self.watch.expired

    def run(self) -> None:
        if self.settings.order is Order.GIVEN:
            self._raise_limit(feasibility_floor(self.problem))
        elif not self.done:
            part = self.watch.part(self.watch.remaining / 5)
            moves = PARAMS.order_moves * PARAMS.move_operations
            order = find_order(self.problem, self.settings.seed, moves, part, self.limit.bytes)
            self._offer(order, "order")
        self._solve_exactly()
        self._descend()
        self._cheapen()

    def _raise_limit(self, floor: Floor) -> None:
        """Raise the limit to one that holds for the problem in the given order."""
        if floor.bytes > self.limit.bytes and _says_all(self.problem):
            self.limit, self.scope = floor, Scope.ORDER

    def _solve_exactly(self) -> None:
        """Solve the MILP for the smallest peak in the best order so far; its limit is used only if this is the given order."""
        entries = liveness_entries(self.problem, repeated_runs(self.problem))
        unfit = self.settings.iterations is not None or entries > PARAMS.quick_entries
        if self.done or unfit or not fits_in_time(entries, self.watch):
            return
        self.watch.on_event(Event(f"{self.settings.solver} for the smallest peak"))
        under = permuted(self.problem, self.order)
        limit, found = smallest_peak(under, self.settings, self.watch.part(self.watch.remaining / 3))
        if found is not None:
            self._offer(in_original(self.order, found), self.settings.solver)
        if self.order == self.given and self.settings.order is Order.GIVEN:
            self._raise_limit(Floor(limit, "", "the schedule of the lowest peak"))

    def _descend(self) -> None:
        """As `solve` would for the limit as its budget, until that is reached or nothing lower is found."""
        if self.done:
            return
        target = self.problem.with_budget(self.limit.bytes)
        lower_peaks(target, self.best, self.settings, self.watch, lambda found: self._offer(found.sequence, found.found_by))

    def _cheapen(self) -> None:
        """The first schedule that fits often recomputes more than necessary: search for a cheaper one that needs no more memory."""
        if self.watch.expired:
            return
        problem, free = self.problem.with_budget(self.model_budget), self.settings.order is Order.SEARCH
        annealing, moves = Annealing(*PARAMS.annealings[0]), PARAMS.annealing_moves * PARAMS.move_operations
        cheaper = anneal_sequence(problem, self.best, annealing, self.settings.seed, moves, self.watch, free=free)
        if cheaper is None:
            return
        if profile(self.problem, cheaper).cost < profile(self.problem, self.best).cost and taken(self.problem, cheaper) <= self.budget:
            self.best = cheaper

    def _offer(self, sequence: tuple[int, ...], name: str) -> None:
        """Accept a schedule if it needs less memory."""
        made = profile(self.problem, sequence).peak
        if made >= self.model_budget:
            return
        needed = taken(self.problem, sequence)
        self.model_budget = made
        if needed <= self.budget:
            self.best, self.budget, self.found_by = sequence, needed, name
            self._tell(Event(name, message=f"{format_bytes(needed)} is enough"))

    def _tell(self, event: Event) -> None:
        """Costs do not matter here: report the budget found and the limit instead."""
        figures = f"found {format_bytes(self.budget)}, limit {format_bytes(self.limit.bytes)}"
        self._listener(Event(event.phase, message=event.message or figures))


def taken(problem: Problem, sequence: tuple[int, ...]) -> int:
    """The peak of a sequence with the memory model of the problem."""
    if not problem.memory_model.overwrites:
        return profile(problem, sequence).peak
    reserve = problem.base - problem.graph.fixed_bytes
    return simulate(problem.graph, problem.costs, expand(problem, sequence), reserve=reserve, memory_model=problem.memory_model).peak_bytes


def _says_all(problem: Problem) -> bool:
    """True if problem and graph need the same memory: no output may overwrite an input, and no view reads more than one value."""
    operations = problem.graph.operations
    return not problem.memory_model.overwrites and not any(operation.view and len(set(operation.inputs)) > 1 for operation in operations)
