"""Where few stages should end: one place after the other, each the one that raises the bound most.

Where memory is scarce but no place is narrow, fractions bound little: half of every value is kept, and half of every recomputation is fed
from that, whatever the number of stages. Whole numbers tell, but only programs of few stages can be solved with them. Which few then
matters a great deal. So places are tried: likely ones first, then all over the order, then ever nearer the best.
"""

from __future__ import annotations

from collections.abc import Sequence

GRID = 16
"""Places tried at first, all over the order."""
NEIGHBOURS = 2
"""Best places around which the next are tried, half as far away each time."""
FINE = 150_000
"""No nearer than the square of the number of operations over this: programs of large graphs take their time; the next place brings more."""
AGAIN = 5
"""Once a place is chosen, programs take longer: only the most promising of what was tried is tried again beside it."""
NEAR = 40
"""Of the places tried again, no two are nearer to each other than this part of the order."""
RISE = 1e-4
"""A relative rise of the bound below this is worth no stage."""


class Selecting:
    """Asked for the ends of stages to try, and told what bound they gave."""

    def __init__(self, count: int, chosen: frozenset[int], likely: Sequence[int] = ()) -> None:
        """Some ends of stages are chosen already, and some places are more likely than others to be good."""
        self.chosen = chosen
        """Ends of stages that stay."""
        self.exhausted = False
        """No further place raises the bound; the next ends are the most promising ones."""
        self._count = count
        self._likely = likely
        self._bound = 0.0
        self._scores: dict[int, float] = {}
        self._earlier: dict[int, float] = {}
        self._step = max(1, count // GRID)
        self._trying: int | None = None
        self._queue: list[int] = []
        self._begun = False

    @property
    def to_beat(self) -> float:
        """What is not above this is of no use."""
        return max([self._bound, *self._scores.values()]) * (1 + RISE)

    @property
    def next_ends(self) -> frozenset[int]:
        """Ends of stages to try next."""
        return self.chosen if self._trying is None else self.chosen | {self._trying}

    def tell(self, bound: float) -> None:
        """What the stages asked for gave."""
        if not self._begun:
            self._begun = True
            self._bound = bound
            self._queue = [*self._likely, *range(self._step, self._count, self._step)]
        elif self._trying is not None:
            self._scores[self._trying] = bound
        self._go_on()

    def _go_on(self) -> None:
        while not self.exhausted:
            while self._queue:
                place = self._queue.pop(0)
                if 0 < place < self._count and place not in self._scores and place not in self.chosen:
                    self._trying = place
                    return
            if self._step > max(1, self._count**2 // FINE):
                self._step //= 2
                best = sorted(self._scores, key=lambda place: (-self._scores[place], place))[:NEIGHBOURS]
                self._queue = [near for place in best for near in (place - self._step, place + self._step)]
            else:
                self._choose()

    def _choose(self) -> None:
        """The best place stays; what else was tried is tried again beside it, the most promising first."""
        best = max(self._scores, key=lambda place: (self._scores[place], -place), default=0)
        if self._scores.get(best, 0.0) <= self._bound * (1 + RISE):
            self.exhausted = True
            self._trying = best or None
            return
        self.chosen |= {best}
        self._bound = self._scores[best]
        self._earlier |= self._scores
        self._scores = {}
        apart = max(1, self._count // NEAR)
        for place in sorted(self._earlier, key=lambda place: (-self._earlier[place], place)):
            if len(self._queue) < AGAIN and place not in self.chosen and all(abs(place - other) >= apart for other in self._queue):
                self._queue.append(place)
