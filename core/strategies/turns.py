"""Whose turn it is in the search: ways to begin a walk and ways to look at a problem, all in turn, but for those that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..problem import Problem
from ..search.views import ZoneView

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


class ZoneTurns:
    """Problems in which zones are passed on given ways: each is tried in all its views, then those go on that lead nearly as far as any."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._passages: list[Mapping[range, Sequence[int]]] = []
        self._views: list[ZoneView] = []
        self._times: list[int] = []
        self._reached: list[float] = []

    def __bool__(self) -> bool:
        return bool(self._views)

    def add(self, passages: Iterable[Mapping[range, Sequence[int]]]) -> None:
        """Ways to pass, some of which may be known."""
        for passage in passages:
            if passage not in self._passages:
                self._passages.append(passage)
                self._views.append(ZoneView.of(self._problem, passage))
                self._times.append(0)
                self._reached.append(float("inf"))

    def next(self) -> tuple[int, ZoneView, int]:
        """The number of the problem to search next, how it looks, and how often it had its turn."""
        near = min(self._reached) * (1 + NEARLY)
        numbers = range(len(self._views))
        open_ones = [number for number in numbers if self._times[number] < len(self._views[number].views) or self._reached[number] <= near]
        chosen = min(open_ones, key=lambda number: (self._times[number], -number))
        self._times[chosen] += 1
        return chosen, self._views[chosen], self._times[chosen] - 1

    def tell(self, number: int, cost: float) -> None:
        """What a walk led to; infinite if nowhere."""
        self._reached[number] = min(self._reached[number], cost)
