"""The largest size, of a batch or of any free dimension, at which a strategy has a schedule that fits and does not cost too much.

Memory grows with the size, so the search doubles until it fails and then closes in. What a schedule of a fixed sequence takes grows almost
linearly, so two sizes tell roughly where it stops fitting. Sequences found at one size are tried at others before anything is solved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .certify import run_strategy
from .curve import BUDGET_FREE, Finding
from .errors import VerificationError
from .events import Event, Watch
from .least_memory import least_memory
from .points import finding_of, recertified
from .problem import Problem
from .result import Status, Stop
from .sequence import profile
from .settings import Known, Settings

LARGEST_SIZE = 2**24
"""Where doubling ends: a model that fits with this size does not depend on it."""
_TOLERANCE = 1e-9
"""Of costs against their limit: sums of floats."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A problem of one size under the budget, and the most a schedule of it may cost."""

    size: int
    problem: Problem
    most: float

    def accepts(self, finding: Finding) -> bool:
        return finding.sequence is not None and finding.peak <= self.problem.budget and finding.cost <= self.most * (1 + _TOLERANCE)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest size that works for one strategy, with its schedule; 0 and none if no size does."""

    strategy: str
    size: int
    finding: Finding | None
    failed: int | None
    """The smallest size that was found not to work; None if every size did."""
    proven: bool
    """No schedule whatever exists at that size, not only none of this strategy."""
    reason: str
    solved: int
    """How many sizes the strategy was run at."""
    seconds: float
    ideal_cost: float
    """Of every operation once, at the size found."""
    complete: bool = True
    """False if the search was broken off between the two."""


class SizeSearch:
    """Trials by size, made once each, and everything found so far, whichever strategy found it."""

    def __init__(
        self, make: Callable[[int], Trial], settings_for: Callable[[str], Settings], watch_for: Callable[[str, int], Watch]
    ) -> None:
        self._make = make
        self._settings_for = settings_for
        self._watch_for = watch_for
        self._trials: dict[int, Trial] = {}
        self._found: list[tuple[int, Finding]] = []
        self._impossible: int | None = None

    def trial(self, size: int) -> Trial:
        if size not in self._trials:
            self._trials[size] = self._make(size)
        return self._trials[size]

    @property
    def sizes_tried(self) -> int:
        return len(self._trials)

    def impossible_from(self) -> int | None:
        """The smallest size at which what must be in memory together exceeds the budget; None if there is none."""
        if self._impossible is None:
            works, fails = _close_in(lambda size: least_memory(self.trial(size).problem).bytes - self.trial(size).problem.budget, 0, None)
            self._impossible = fails if fails is not None else works + 1
        return self._impossible if self._impossible <= LARGEST_SIZE else None

    def find(self, strategy: str) -> Largest:
        """The answer for one strategy. `auto` begins where the best of the others before it ended."""
        return _Search(self, strategy).run()

    @property
    def best_so_far(self) -> tuple[int, Finding] | None:
        return max(self._found, key=lambda found: (found[0], -found[1].cost), default=None)

    def solve(self, strategy: str, trial: Trial) -> tuple[Finding, bool]:
        """Run a strategy until it has a schedule that is cheap enough, or a proof that there is none; and whether it was broken off."""
        for patient in (False, True):
            watch = self._watch_for(strategy, trial.size)
            decided = _Decided(trial.most, watch)
            settings = replace(self._settings_for(strategy), known=Known(self._start(trial)))
            asking = watch if patient else Watch(watch.time_limit, decided.on_event, decided.is_over, watch.started)
            found = finding_of(trial.problem, run_strategy(trial.problem, strategy, settings, asking))
            if trial.accepts(found) or patient or not decided.cheap_enough or watch.interrupted():
                return found, watch.interrupted()
        raise AssertionError

    def replayed(self, trial: Trial) -> Finding | None:
        """A schedule of another size that works at this one too."""
        for sequence in self._sequences_by_cost(trial):
            found = _replay(trial, sequence)
            if found is not None and trial.accepts(found):
                return found
        return None

    def remember(self, size: int, finding: Finding) -> None:
        self._found.append((size, finding))

    def _sequences_by_cost(self, trial: Trial) -> list[tuple[int, ...]]:
        """Of all schedules found, those of graphs like this one that are cheap enough here, cheapest first."""
        cost = trial.problem.cost
        alike = {found.sequence for _, found in self._found if found.sequence is not None and max(found.sequence, default=0) < len(cost)}
        priced = sorted((sum(cost[operation] for operation in sequence), sequence) for sequence in alike)
        return [sequence for amount, sequence in priced if amount <= trial.most * (1 + _TOLERANCE)]

    def _start(self, trial: Trial) -> tuple[int, ...] | None:
        """What a run may begin with, even if it has to leave some of it."""
        fitting = (sequence for sequence in self._sequences_by_cost(trial) if profile(trial.problem, sequence).peak <= trial.problem.budget)
        return next(fitting, None)


class _Decided:
    """Listens until the question whether there is a cheap enough schedule has an answer."""

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
    """One strategy: what worked, what did not, and why."""

    def __init__(self, sizes: SizeSearch, strategy: str) -> None:
        self.sizes = sizes
        self.strategy = strategy
        self.best: Finding | None = None
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
            self._fail(impossible, proven=True, reason="what must be in memory together is more than the budget")
        if self.strategy in BUDGET_FREE:
            self._fixed_sequence()
        else:
            self._search()
        complete = not self.interrupted or self.failed == self.best_size + 1
        return Largest(
            strategy=self.strategy,
            size=self.best_size,
            finding=self.best,
            failed=self.failed,
            proven=self.proven,
            reason=self.reason,
            solved=self.solved,
            seconds=self.seconds,
            ideal_cost=self.sizes.trial(self.best_size).problem.ideal_cost if self.best_size else 0.0,
            complete=complete,
        )

    def _fixed_sequence(self) -> None:
        """One schedule for all sizes, or nearly so: where it stops fitting can be told from two sizes."""

        def excess(size: int) -> float:
            trial = self.sizes.trial(size)
            found = self._solve(trial)
            return float("inf") if found is None else found.peak - trial.problem.budget

        self._close(excess)

    def _search(self) -> None:
        """Try what is known, then solve. Once something is found, see first how far it reaches."""

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
        """How far the schedules of others reach."""
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

    def _solve(self, trial: Trial) -> Finding | None:
        """Run the strategy; None, and why, if it has nothing for this size."""
        found, interrupted = self.sizes.solve(self.strategy, trial)
        self.solved += 1
        self.seconds += found.seconds
        if trial.accepts(found):
            self._succeed(trial.size, found)
            return found
        if interrupted:
            self.interrupted = True
            return None
        if found.sequence is not None and found.peak > trial.problem.budget:
            self._fail(trial.size, reason="its schedule does not fit")
            return found if self.strategy in BUDGET_FREE else None
        proven = found.status is Status.INFEASIBLE or (found.bound_scope == "any" and found.bound > trial.most * (1 + _TOLERANCE))
        self._fail(trial.size, proven=proven, reason=_why(found, trial))
        return None

    def _succeed(self, size: int, finding: Finding) -> None:
        if size > self.best_size:
            self.best, self.best_size = finding, size
            self.sizes.remember(size, finding)

    def _fail(self, size: int, *, reason: str, proven: bool = False) -> None:
        if self.failed is None or size < self.failed:
            self.failed, self.reason, self.proven = size, reason, proven


def _why(found: Finding, trial: Trial) -> str:
    if found.bound > trial.most * (1 + _TOLERANCE):
        return "proven: every schedule costs too much" if found.bound_scope == "any" else "every schedule in the order tried costs too much"
    if found.sequence is not None and found.peak <= trial.problem.budget:
        return "the schedules found cost too much"
    if found.reason:
        return found.reason
    return "no schedule was found in time" if found.stop is Stop.TIME_LIMIT else "no schedule was found"


def _replay(trial: Trial, sequence: Sequence[int]) -> Finding | None:
    """A sequence of another size, weighed at this one; None if the graphs are not alike."""
    finding = Finding(
        trial.problem.budget, Status.FEASIBLE, Stop.FINISHED, tuple(sequence), bound=trial.problem.ideal_cost, found_by="another size"
    )
    try:
        return recertified(trial.problem, finding)
    except VerificationError:
        return None


def _close_in(excess: Callable[[int], float], works: int, fails: int | None, *, linear: bool = True) -> tuple[int, int | None]:
    """The largest size whose excess is not above 0, and the smallest whose is: neighbours, if sizes behave.

    `works` is known to, 0 without trying; `fails` is known not to. By doubling, then by halving what is between; by proportion wherever
    that is promising.
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
