"""Whose turn it is in the search: ways to begin a walk and ways to look at a problem, all in turn, but for those that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..bounds.zoning import Passage
from ..model.problem import Problem
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


class ZoneTurn(NamedTuple):
    """A walk in a problem in which zones are passed on given ways."""

    number: int
    view: ZoneView
    again: frozenset[int]
    """What a relaxation recomputes that passes zones so."""
    walks: int
    beliefs: int
    """How often this problem had its turn before, and how often what the relaxation says was believed then."""
    trusting: bool
    """Now, too: of what is dear, only what the relaxation recomputes may be."""

    @property
    def is_early(self) -> bool:
        """Was it not yet looked at in all views?"""
        return self.walks < len(self.view.views)


class ZoneTurns:
    """Problems in which zones are passed on given ways: each is tried in all its views, then those go on that lead nearly as far as any.

    Every other time the relaxation is believed, and at once when it has something new to say; but never twice in a row: it may have
    something new to say again and again.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._turns: list[ZoneTurn] = []
        self._ways: list[Mapping[range, Sequence[int]]] = []
        self._reached: list[float] = []
        self._said: list[Passage] = []
        self._believed_last = False

    def __bool__(self) -> bool:
        return bool(self._turns)

    @property
    def is_urgent(self) -> bool:
        """Has a relaxation said something that was not tried?"""
        return bool(self._urgent)

    @property
    def _urgent(self) -> list[ZoneTurn]:
        return [] if self._believed_last else [turn for turn in self._turns if turn.trusting and not turn.beliefs]

    @property
    def begun(self) -> bool:
        """Did any walk lead anywhere?"""
        return min(self._reached, default=float("inf")) < float("inf")

    def add(self, passages: Iterable[Passage]) -> None:
        """Ways to pass, some of which may be known: what was said last of what else is recomputed then counts."""
        for passage in (passage for passage in passages if passage not in self._said):
            self._said.append(passage)
            if passage.ways in self._ways:
                number = self._ways.index(passage.ways)
                self._turns[number] = self._turns[number]._replace(again=passage.again, beliefs=0, trusting=True)
            else:
                view = ZoneView.of(self._problem, passage.ways)
                self._turns.append(ZoneTurn(len(self._turns), view, passage.again, 0, 0, trusting=False))
                self._ways.append(passage.ways)
                self._reached.append(float("inf"))

    def next(self) -> ZoneTurn:
        """What to search next."""
        near = min(self._reached) * (1 + NEARLY)
        open_ones = [turn for turn in self._turns if turn.is_early or self._reached[turn.number] <= near]
        chosen = min(self._urgent or open_ones, key=lambda turn: (turn.walks + turn.beliefs, -turn.number))
        believed = self._believed_last = chosen.trusting and not self._believed_last
        walks, beliefs = chosen.walks + (not believed), chosen.beliefs + believed
        self._turns[chosen.number] = chosen._replace(walks=walks, beliefs=beliefs, trusting=not believed)
        return chosen._replace(trusting=believed)

    def tell(self, turn: ZoneTurn, cost: float) -> None:
        """What a walk led to; infinite if nowhere."""
        self._reached[turn.number] = min(self._reached[turn.number], cost)
