"""Whose turn it is in the search: ways to begin a walk and ways to look at a problem, all in turn, but for those that lead nowhere."""

from __future__ import annotations

from typing import NamedTuple

MOST_RESTS = 3
"""Turns that a way sits out at most."""


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
