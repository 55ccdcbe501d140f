"""Where stages of a linear relaxation should end, one linear program after the other: at narrow places where memory is exceeded.

An operation that takes much of the memory for itself leaves little for anything else: what is carried past it is nearly decided, and even
fractions prove a lot if a stage ends there. How much it takes together with what the fractions hold says less. And more stages are not
always better: every end is one more moment at which memory is looked at, but also one more stage over which a recomputation can be spread
in fractions. So several rules are tried, each from the start, as long as programs take a moment only; the best of them is then cut finer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..events import Watch
from ..model.problem import Problem

RISE = 1e-5
"""A relative rise of the bound below this counts as none."""
PATIENCE = 2
"""Rounds without a rise after which a rule has given what it can."""
ENOUGH = 1e-6
"""Excess, as a share of the available memory, that is worth no further cut."""
LINEAR_SHARE = 0.7
GROWTH = 4
"""The part of a program's time that a linear one may take: with twice the stages it takes about two to this power times as long."""
NARROWEST = 4
WORST = 12
"""New ends of stages in one round: the narrowest places of all, and the worst of each stage."""

Floats = NDArray[np.float64]
Excess = list[NDArray[np.int64]]
"""The operations of each stage during which too much memory is taken, but for its last: there the program looks already."""
Rule = Callable[[Excess, Floats, Floats], set[int]]
"""From operations at which memory is exceeded, what each operation takes for itself and what is taken while it runs: where to cut."""


@dataclass(frozen=True, slots=True)
class _Best:
    bound: float
    ends: frozenset[int]
    finer: frozenset[int]
    """The same, with what its solution says should be added."""


class Cutting:
    """Asked for the ends of stages to try, and told what the linear program of those gave."""

    def __init__(self, problem: Problem, peak: int, quick: int) -> None:
        """Programs with fewer than `quick` ends of stages take a moment only."""
        self.done = False
        """Fractions have no more to give."""
        self.next_ends = frozenset({peak})
        """Ends of stages to try next."""
        self._own = own_memory(problem)
        self._quick = quick
        self._best = _Best(0.0, self.next_ends, self.next_ends)
        self._begun = False
        self._rule: Rule = _finer
        self._waiting: list[tuple[Rule, frozenset[int]]] = []
        """Rules not tried so far, and where each would have stages end first."""
        self._first_bound = self._level = 0.0
        self._without_rise = 0

    @property
    def best_ends(self) -> frozenset[int]:
        """Those that gave the best bound, or that were asked for since."""
        return self._best.ends

    @property
    def is_quick(self) -> bool:
        """Does the next program take a moment only?"""
        return len(self.next_ends) < self._quick

    def tell(self, bound: float, stages: Sequence[range], taken: Floats, limit: float, growth: float) -> None:
        """What the stages asked for gave: a bound, and how much memory is taken while each operation runs. There is time for a program with
        `growth` times as many ends."""
        exceeded = [places[taken[places] > limit] for stage in stages if len(places := np.arange(stage.start, stage.stop - 1))]
        self._without_rise = 0 if bound > self._level * (1 + RISE) else self._without_rise + 1
        self._level = max(self._level, bound)
        if bound > self._best.bound * (1 + RISE):
            self._best = _Best(bound, self.next_ends, self.next_ends | _finer(exceeded, self._own, taken))
        if not self._begun:
            self._begun = True
            self._first_bound = bound
            self._waiting = [(rule, self.next_ends | rule(exceeded, self._own, taken)) for rule in RULES]
            self._take_next_rule()
            return
        more = self.next_ends | self._rule(exceeded, self._own, taken)
        ended = more == self.next_ends or self._without_rise >= PATIENCE
        if self._rule is _finer:
            most = growth * len(self.next_ends)
            if len(more) > most:
                more = self.next_ends | few_narrowest(exceeded, self._own, taken)
            self.next_ends = more
            self.done = ended or len(more) > most
        elif ended or len(more) >= self._quick:
            self._take_next_rule()
        else:
            self.next_ends = more

    def _take_next_rule(self) -> None:
        """The next with which programs take a moment only; after the last, the best of all is cut finer."""
        self._without_rise = 0
        while self._waiting:
            self._rule, ends = self._waiting.pop(0)
            if ends != self.next_ends and len(ends) < self._quick:
                self.next_ends, self._level = ends, self._first_bound
                return
        self._rule = _finer
        self.next_ends, self._level = self._best.finer, self._best.bound
        self.done = self._best.finer == self._best.ends

    @property
    def best_bound(self) -> float:
        return self._best.bound

    def fork(self) -> Cutting:
        """Another that goes on from here on its own."""
        other = copy(self)
        other._waiting = list(self._waiting)
        return other

    def go_on(self, ends: Set[int], bound: float = 0.0) -> None:
        """From other ends, which fractions did not ask for: one round, and more only if that raises the bound they gave, or the best."""
        self._begun, self._rule, self._waiting = True, _finer, []
        self.next_ends = frozenset(ends)
        self._best = _Best(max(bound, self._best.bound), self.next_ends, self.next_ends)
        self._level = self._best.bound
        self._without_rise = PATIENCE - 1
        self.done = False


def growth_in_time(watch: Watch) -> Callable[[], float]:
    """Asked after a linear program: how many times as many stages the next may have, so that there is time for it."""
    begun, allowed = watch.elapsed, watch.remaining * LINEAR_SHARE
    return lambda: float((allowed / max(watch.elapsed - begun, 1e-3)) ** (1 / GROWTH))


def own_memory(problem: Problem) -> Floats:
    """How narrow it gets while each operation runs: the share of the memory there is that it takes for itself."""
    return np.array([problem.own_bytes(operation) for operation in range(problem.count)]) / max(1, problem.available)


def few_narrowest(exceeded: Excess, own: Floats, taken: Floats) -> set[int]:
    """After the few operations of all that take most for themselves."""
    places = np.concatenate(exceeded) if exceeded else np.zeros(0, dtype=np.int64)
    return {int(place) + 1 for place in places[np.argsort(-own[places], kind="stable")][:NARROWEST]}


def narrowest_of_each(exceeded: Excess, own: Floats, taken: Floats) -> set[int]:
    """After the operation of every stage that takes most for itself."""
    return _one_of_each(exceeded, own)


def worst_of_each(exceeded: Excess, own: Floats, taken: Floats) -> set[int]:
    """After the operation of every stage during which most is taken."""
    return _one_of_each(exceeded, taken)


def _one_of_each(exceeded: Excess, measure: Floats) -> set[int]:
    chosen = [int(places[np.argmax(measure[places])]) for places in exceeded if len(places)]
    return {place + 1 for place in sorted(chosen, key=lambda place: (-measure[place], place))[:WORST]}


def _finer(exceeded: Excess, own: Floats, taken: Floats) -> set[int]:
    return few_narrowest(exceeded, own, taken) | worst_of_each(exceeded, own, taken)


RULES: tuple[Rule, ...] = (few_narrowest, narrowest_of_each, worst_of_each)
