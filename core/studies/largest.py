"""The largest size, of a batch or of any free dimension, at which a strategy has a schedule that fits and does not cost too much.

Memory grows with the size, so the search doubles the size until it fails and then bisects. The memory of a fixed sequence grows almost
linearly with the size, so two sizes predict roughly where it stops fitting. Sequences found at one size are tried at others before anything
is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..engine.run import run_strategy
from ..errors import VerificationError
from ..events import Event, Watch
from ..model.floors import least_memory
from ..model.problem import Problem
from ..result import Result, Scope, Status, Stop
from ..schedule.sequence import profile
from ..settings import Known, Settings
from .curve import BUDGET_FREE
from .points import recertified

LARGEST_SIZE = 2**24
"""Where doubling ends: the memory of a model that fits at this size does not depend on the size."""
_TOLERANCE = 1e-9
"""Relative tolerance for comparing costs with their limit."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The problem for one size, with the budget, and the most that a schedule of it may cost."""

    size: int
    problem: Problem
    most: float

    def accepts(self, result: Result) -> bool:
        return result.fits and result.cost <= self.most * (1 + _TOLERANCE)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest size that works for one strategy, and its schedule; 0 and None if no size works."""

    strategy: str
    size: int
    result: Result | None
    failed: int | None
    """The smallest size that was found not to work; None if every size worked."""
    proven: bool
    """It is proven that no schedule exists at that size, not only that this strategy found none."""
    reason: str
    solved: int
    """How many sizes the strategy was run at."""
    seconds: float
    ideal_cost: float
    """The ideal cost at the size found."""
    complete: bool = True
    """False if the search was interrupted before the two sizes were neighbours."""


class SizeSearch:
    """Trials by size, each made once, and all schedules found so far by any strategy."""

    def __init__(
        self, make: Callable[[int], Trial], settings_for: Callable[[str], Settings], watch_for: Callable[[str, int], Watch]
    ) -> None:
        self._make = make
        self._settings_for = settings_for
        self._watch_for = watch_for
        self._trials: dict[int, Trial] = {}
        self._found: list[tuple[int, Result]] = []
        self._impossible: int | None = None

    def trial(self, size: int) -> Trial:
        if size not in self._trials:
            self._trials[size] = self._make(size)
        return self._trials[size]

    @property
    def sizes_tried(self) -> int:
        return len(self._trials)

    def impossible_from(self) -> int | None:
        """The smallest size at which the values that must be in memory together exceed the budget; None if there is none."""
        if self._impossible is None:
            works, fails = _close_in(lambda size: least_memory(self.trial(size).problem).bytes - self.trial(size).problem.budget, 0, None)
            self._impossible = fails if fails is not None else works + 1
        return self._impossible if self._impossible <= LARGEST_SIZE else None

    def find(self, strategy: str) -> Largest:
        """The result for one strategy. `auto` starts from the best result of the strategies before it."""
        return _Search(self, strategy).run()

    @property
    def best_so_far(self) -> tuple[int, Result] | None:
        return max(self._found, key=lambda found: (found[0], -found[1].cost), default=None)

    def solve(self, strategy: str, trial: Trial) -> tuple[Result, bool]:
        """Run a strategy until it has a schedule that is cheap enough, or a proof that there is none; and whether it was interrupted."""
        for patient in (False, True):
            watch = self._watch_for(strategy, trial.size)
            decided = _Decided(trial.most, watch)
            settings = replace(self._settings_for(strategy), known=Known(self._start(trial)))
            asking = watch if patient else Watch(watch.time_limit, decided.on_event, decided.is_over, watch.started)
            found = run_strategy(trial.problem, strategy, settings, asking)
            if trial.accepts(found) or patient or not decided.cheap_enough or watch.interrupted():
                return found, watch.interrupted()
        raise AssertionError

    def replayed(self, trial: Trial) -> Result | None:
        """A schedule of another size that works at this one too."""
        for sequence in self._sequences_by_cost(trial):
            found = _replay(trial, sequence)
            if found is not None and trial.accepts(found):
                return found
        return None

    def remember(self, size: int, result: Result) -> None:
        self._found.append((size, result))

    def _sequences_by_cost(self, trial: Trial) -> list[tuple[int, ...]]:
        """All schedules found so far that apply to this graph and are cheap enough here, cheapest first."""
        cost = trial.problem.cost
        alike = {found.sequence for _, found in self._found if found.sequence is not None and max(found.sequence, default=0) < len(cost)}
        priced = sorted((sum(cost[operation] for operation in sequence), sequence) for sequence in alike)
        return [sequence for amount, sequence in priced if amount <= trial.most * (1 + _TOLERANCE)]

    def _start(self, trial: Trial) -> tuple[int, ...] | None:
        """The cheapest known schedule that fits, for a run to start from; None if there is none."""
        fitting = (sequence for sequence in self._sequences_by_cost(trial) if profile(trial.problem, sequence).peak <= trial.problem.budget)
        return next(fitting, None)


class _Decided:
    """Listens to events until it is known whether there is a schedule that is cheap enough."""

    def __init__(self, most: float, watch: Watch) -> None:
        self.cheap_enough = False
        self.hopeless = False
        self._most = most
        self._watch = watch

    def on_event(self, event: Event) -> None:
        self.cheap_enough |= event.incumbent is not None and event.incumbent <= self._most
        self.hopeless |= event.bound is not None and event.bound > self._most * (1 + _TOLERANCE)
        self._watch.on_event(event)

    def is_over(self) -> bool:
        return self.cheap_enough or self.hopeless or self._watch.interrupted()


class _Search:
    """The search for one strategy: which sizes worked, which did not, and why."""

    def __init__(self, sizes: SizeSearch, strategy: str) -> None:
        self.sizes = sizes
        self.strategy = strategy
        self.best: Result | None = None
        self.best_size = 0
        self.failed: int | None = None
        self.proven = False
        self.reason = ""
        self.solved = 0
        self.seconds = 0.0
        self.interrupted = False

    def run(self) -> Largest:
        impossible = self.sizes.impossible_from()
        if impossible is not None:
            self._fail(impossible, proven=True, reason="the values that must be in memory together exceed the budget")
        if self.strategy in BUDGET_FREE:
            self._fixed_sequence()
        else:
            self._search()
        complete = not self.interrupted or self.failed == self.best_size + 1
        return Largest(
            strategy=self.strategy,
            size=self.best_size,
            result=self.best,
            failed=self.failed,
            proven=self.proven,
            reason=self.reason,
            solved=self.solved,
            seconds=self.seconds,
            ideal_cost=self.sizes.trial(self.best_size).problem.ideal_cost if self.best_size else 0.0,
            complete=complete,
        )

    def _fixed_sequence(self) -> None:
        """The strategy has nearly the same schedule at all sizes: two sizes predict where it stops fitting."""

        def excess(size: int) -> float:
            trial = self.sizes.trial(size)
            found = self._solve(trial)
            return float("inf") if found is None else found.peak_bytes - trial.problem.budget

        self._close(excess)

    def _search(self) -> None:
        """Try known schedules, then solve. Once a schedule is found, first try at which sizes it still works."""

        def excess(size: int) -> float:
            trial = self.sizes.trial(size)
            known = self.sizes.replayed(trial) if self.strategy == "auto" else None
            if known is not None:
                self._succeed(size, known)
                return -1.0
            return float("inf") if self._solve(trial) is None else -1.0

        if self.strategy == "auto":
            self._reach()
        self._close(excess, linear=False)

    def _reach(self) -> None:
        """The largest size at which schedules of other strategies work."""
        best = self.sizes.best_so_far
        if best is None:
            return
        self._succeed(*best)

        def excess(size: int) -> float:
            trial = self.sizes.trial(size)
            found = self.sizes.replayed(trial)
            if found is None:
                return float("inf")
            self._succeed(size, found)
            return -1.0

        _close_in(excess, self.best_size, self.failed, linear=False)

    def _close(self, excess: Callable[[int], float], *, linear: bool = True) -> None:
        _close_in(lambda size: float("inf") if self.interrupted else excess(size), self.best_size, self.failed, linear=linear)

    def _solve(self, trial: Trial) -> Result | None:
        """Run the strategy; if it has no schedule for this size, record why and return None."""
        found, interrupted = self.sizes.solve(self.strategy, trial)
        self.solved += 1
        self.seconds += found.seconds
        if trial.accepts(found):
            self._succeed(trial.size, found)
            return found
        if interrupted:
            self.interrupted = True
            return None
        if found.certificate is not None and not found.fits:
            self._fail(trial.size, reason="its schedule does not fit")
            return found if self.strategy in BUDGET_FREE else None
        proven = found.status is Status.INFEASIBLE or (
            found.bound_scope is Scope.ANY and (found.bound or 0.0) > trial.most * (1 + _TOLERANCE)
        )
        self._fail(trial.size, proven=proven, reason=_why(found, trial))
        return None

    def _succeed(self, size: int, result: Result) -> None:
        if size > self.best_size:
            self.best, self.best_size = result, size
            self.sizes.remember(size, result)

    def _fail(self, size: int, *, reason: str, proven: bool = False) -> None:
        if self.failed is None or size < self.failed:
            self.failed, self.reason, self.proven = size, reason, proven


def _why(found: Result, trial: Trial) -> str:
    if (found.bound or 0.0) > trial.most * (1 + _TOLERANCE):
        return (
            "proven: every schedule costs too much"
            if found.bound_scope is Scope.ANY
            else "every schedule in the order tried costs too much"
        )
    if found.fits:
        return "the schedules found cost too much"
    if found.reason:
        return found.reason
    return "no schedule was found in time" if found.stop is Stop.TIME_LIMIT else "no schedule was found"


def _replay(trial: Trial, sequence: Sequence[int]) -> Result | None:
    """A sequence from another size, certified at this one; None if it does not apply to this graph."""
    result = Result(Status.FEASIBLE, Stop.FINISHED, tuple(sequence), provenance={"found_by": "another size"})
    try:
        return recertified(trial.problem, result)
    except VerificationError:
        return None


def _close_in(excess: Callable[[int], float], works: int, fails: int | None, *, linear: bool = True) -> tuple[int, int | None]:
    """The largest size whose excess is at most 0, and the smallest whose excess is above 0; neighbours, if the excess grows with the size.

    `works` is a size that is known to work (0 without trying), `fails` one that is known to fail. By doubling, then by bisection, which
    alternates with linear interpolation if `linear`.
    """
    amounts: dict[int, float] = {}
    size = max(2 * works, 1) if fails is None else 0
    while fails is None:
        amounts[size] = excess(size)
        if amounts[size] > 0:
            fails = size
        else:
            works = size
            if size >= LARGEST_SIZE:
                return works, None
        size = min(2 * size, LARGEST_SIZE)
    by_proportion = linear
    while fails - works > 1:
        middle = (works + fails) // 2
        low, high = amounts.get(works), amounts.get(fails)
        if by_proportion and low is not None and high is not None and high < float("inf"):
            middle = works + int((fails - works) * -low / (high - low)) if high > low else middle
            middle = min(max(middle, works + 1), fails - 1)
        by_proportion = linear and not by_proportion
        amounts[middle] = excess(middle)
        if amounts[middle] > 0:
            fails = middle
        else:
            works = middle
    return works, fails
