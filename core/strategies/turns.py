"""Whose turn it is in the search: ways to begin a walk and ways to look at a problem, all in turn, but for those that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..problem import Problem
from ..search.views import ZoneView
from .zoning import Passage

MOST_RESTS = 3
"""Turns that a way sits out at most."""
NEARLY = 0.02
"""A way through zones leads nearly as far as the best if what it led to is no more than this share dearer."""


class Way(NamedTuple):
    """A walk in one of the views, from the best schedule or from what a relaxation gave."""

    view: int
    from_best: bool


class Turns:
    """Every view with each of two starts, two walks from one and two from the other; who fails sits out as often as it did in a row."""

    def __init__(self, views: int) -> None:
        self._views = views
        self._turn = -1
        self._failed: dict[Way, int] = {}
        self._resting: dict[Way, int] = {}

    def next(self) -> Way:
        """What to try next."""
        while True:
            self._turn += 1
            way = Way(self._turn % self._views, from_best=self._turn // 2 % 2 == 1)
            if not self._resting.get(way, 0):
                return way
            self._resting[way] -= 1

    @property
    def round(self) -> int:
        """How often all views have had their turn."""
        return self._turn // self._views

    def tell(self, way: Way, *, failed: bool) -> None:
        """Whether a walk led anywhere."""
        self._failed[way] = self._failed.get(way, 0) + 1 if failed else 0
        self._resting[way] = min(MOST_RESTS, self._failed[way])


class ZoneTurn(NamedTuple):
    """A walk in a problem in which zones are passed on given ways."""

    number: int
    view: ZoneView
    again: frozenset[int]
    """What a relaxation recomputes that passes zones so."""
    times: int
    """How often this problem had its turn before."""

    @property
    def trusting(self) -> bool:
        """Every other time only what a relaxation recomputes may be, of what is dear."""
        return self.times % 2 == 1

    @property
    def is_early(self) -> bool:
        """Was it not yet looked at in all views, trusting and not?"""
        return self.times < 2 * len(self.view.views)


class ZoneTurns:
    """Problems in which zones are passed on given ways: each is tried in all its views, then those go on that lead nearly as far as any."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._turns: list[ZoneTurn] = []
        self._ways: list[Mapping[range, Sequence[int]]] = []
        self._reached: list[float] = []

    def __bool__(self) -> bool:
        return bool(self._turns)

    def add(self, passages: Iterable[Passage]) -> None:
        """Ways to pass, some of which may be known: what was said last of what else is recomputed then counts."""
        for passage in passages:
            if passage.ways in self._ways:
                number = self._ways.index(passage.ways)
                self._turns[number] = self._turns[number]._replace(again=passage.again)
            else:
                self._turns.append(ZoneTurn(len(self._turns), ZoneView.of(self._problem, passage.ways), passage.again, 0))
                self._ways.append(passage.ways)
                self._reached.append(float("inf"))

    def next(self) -> ZoneTurn:
        """What to search next."""
        near = min(self._reached) * (1 + NEARLY)
        open_ones = [turn for turn in self._turns if turn.is_early or self._reached[turn.number] <= near]
        chosen = min(open_ones, key=lambda turn: (turn.times, -turn.number))
        self._turns[chosen.number] = chosen._replace(times=chosen.times + 1)
        return chosen

    def tell(self, turn: ZoneTurn, cost: float) -> None:
        """What a walk led to; infinite if nowhere."""
        self._reached[turn.number] = min(self._reached[turn.number], cost)
