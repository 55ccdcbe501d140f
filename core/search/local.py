"""Into the search and out again: sequences to states, states to sequences, and the loop that runs while time remains."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..events import Watch
from ..jit.tables import Ints
from ..model.problem import Problem
from ..schedule.sequence import just_in_time, last_reads, prune
from .fitting import cheapest_that_fits
from .layout import Layout, fine_layout
from .space import State, new_state, stage_numbers
from .stage_kernels import anneal
from .stage_steps import recomputed, reset

CHUNK = 2000
CHUNK_OPERATIONS = 1000
"""Moves between two looks at the clock; fewer on graphs with more operations than this, where each may take long: 2,000 moves on
densenet121 (7,309 operations) near its smallest budget once took minutes."""
HOT = 1.0
COOLING = 1e-2
"""The temperature falls from the cost of an average operation to a hundredth of that."""
CHEAP = 7e-4
DEAR = 1.0
"""What all of the available memory too much, in one stage, costs at first and in the end, as a share of all work done once. A walk begins
where excess is cheap, and cheap are the recomputations that then remove it; if it were dear at once, any would do."""
GENTLE_HOT = 0.3
GENTLE_CHEAP = 3e-3
"""The same for a walk that begins with a schedule that fits, to improve it."""
LAST_CHUNKS = 10
"""At most this many more, at rising prices, if nothing was found that fits."""


class LocalSearch:
    """One walk through the states of a problem. Deterministic for a seed and a number of moves."""

    def __init__(self, problem: Problem, seed: int, layout: Layout | None = None) -> None:
        self.problem = problem
        self.layout = layout or fine_layout(problem)
        self.state: State = new_state(problem, seed, self.layout)
        self.best: Ints = self.chosen
        self.best_cost = float("inf")
        self.price = 0.2
        self.reference = max(problem.ideal_cost, 1e-300)

    @property
    def chosen(self) -> Ints:
        """What is chosen for the gaps at present."""
        gaps = self.state.gaps
        return np.stack([gaps["stay"], gaps["hold"], gaps["until"]])

    @property
    def cost(self) -> float:
        """The cost of all recomputations."""
        return float(self.state.totals["cost"][0])

    @property
    def over(self) -> float:
        """By how much of the available memory the stages exceed it, all together."""
        return float(self.state.totals["over"][0])

    def begin(self, sequence: Sequence[int]) -> None:
        """Start from the state nearest to a sequence."""
        encode(self.problem, self.layout, self.state, sequence)
        reset(self.state)
        if self.over == 0.0 and self.cost < self.best_cost:
            self.best_cost = self.cost
            self.best = self.chosen

    def return_to_best(self) -> None:
        if self.best_cost < float("inf"):
            self.restore(self.best)

    def restore(self, chosen: Ints) -> None:
        gaps = self.state.gaps
        gaps["stay"], gaps["hold"], gaps["until"] = chosen
        reset(self.state)

    def run(self, moves: int, hot: float, cold: float) -> None:
        """Anneal once."""
        if len(self.state.movable):
            self.best_cost, self.price = anneal(self.state, self.best, self.best_cost, moves, hot, cold, self.price, self.reference)

    def best_sequence(self) -> tuple[int, ...] | None:
        """The cheapest state that fits, as a sequence whose profile says so too."""
        if self.best_cost == float("inf"):
            return None
        present = self.chosen
        self.return_to_best()
        found = decode(self.problem, self.layout, self.state)
        self.restore(present)
        return cheapest_that_fits(self.problem, [found, just_in_time(self.problem, found)])


def encode(problem: Problem, layout: Layout, state: State, sequence: Sequence[int]) -> None:
    """For every gap: how long the value stays after its first use there, and from when it is back before the last."""
    stage_of = stage_numbers(problem, layout)
    held: list[list[tuple[int, int]]] = [[] for _ in problem.size]
    frees = last_reads(problem, sequence)
    stage = computed = 0
    seen = [False] * problem.count
    made_in = [-1] * len(problem.size)
    for position, operation in enumerate(sequence):
        for value in problem.outputs[operation]:
            made_in[value] = stage
        for value in frees[position]:
            held[value].append((made_in[value], stage))
            made_in[value] = -1
        if not seen[operation]:
            seen[operation] = True
            computed += 1
            stage = stage_of[computed]
    for value, made in enumerate(made_in):
        if made >= 0:
            held[value].append((made, len(layout.runs) - 1))
    gaps = zip(*(state.gaps[name].tolist() for name in ("value", "low", "high")), strict=True)
    choices = [(high, False, high) if layout.always_kept[value] else _choice(low, high, held[value]) for value, low, high in gaps]
    state.gaps["stay"], state.gaps["hold"], state.gaps["until"] = zip(*choices, strict=True) if choices else ((), (), ())


def _choice(low: int, high: int, held: list[tuple[int, int]]) -> tuple[int, bool, int]:
    """What to choose for a gap whose value is made in one stage and freed in another, and held at the start of the stages between."""
    stay, hold, until = low, False, high
    for made, freed in held:
        begin, end = max(low, made), min(high, freed)
        if begin >= end:
            continue
        if begin == low:
            stay = max(stay, end)
        else:
            hold, until = True, end
        if stay >= high:
            hold, until = False, high
    return stay, hold, until


def decode(problem: Problem, layout: Layout, state: State) -> tuple[int, ...]:
    """Stage by stage: what must be recomputed, then the first computations."""
    sequence: list[int] = []
    for stage, run in enumerate(layout.runs):
        found = recomputed(state, stage)
        sequence.extend(state.chosen[: max(found, 0)].tolist())
        sequence.extend(operation for operation in run if operation < problem.count)
    return prune(problem, sequence)


def walk_from(
    problem: Problem, start: Sequence[int], seed: int, moves: int, watch: Watch, layout: Layout | None = None
) -> tuple[int, ...] | None:
    """Anneal from a start for a number of moves, in chunks so that the clock is looked at; the best schedule found that fits."""
    walk = LocalSearch(problem, seed, layout)
    walk.begin(start)
    gentle = walk.best_cost < float("inf") and walk.cost > 0
    hot = (GENTLE_HOT if gentle else HOT) / max(1, problem.count)
    cheap = GENTLE_CHEAP if gentle else CHEAP
    size = max(1, CHUNK * CHUNK_OPERATIONS // max(CHUNK_OPERATIONS, problem.count))
    chunks = max(1, moves // size)
    for chunk in range(chunks):
        if watch.expired:
            return walk.best_sequence()
        walk.price = cheap * (DEAR / cheap) ** (chunk / chunks)
        walk.run(size, hot * COOLING ** (chunk / chunks), hot * COOLING ** ((chunk + 1) / chunks))
    for _ in range(LAST_CHUNKS):
        if watch.expired or walk.best_cost < float("inf"):
            break
        walk.run(size, hot * COOLING, hot * COOLING)
    return walk.best_sequence()
