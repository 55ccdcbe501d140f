"""Better schedules near one that is known: small MILPs in which a part of the schedule is free and the rest stays as it is.

Local search changes one thing at a time; a MILP changes a few dozen operations at once, everywhere in the schedule, and knows when there is
nothing better. Which operations are free is drawn at random: those around something that is recomputed and around some that are kept when
memory is full, so that the ones can be traded for the others.
"""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from ..events import Event, Watch
from ..milp.around import Around
from ..milp.liveness import build_neighbourhood, free_decisions
from ..model.problem import Problem
from ..model.transforms.permute import in_original, in_permuted, permuted
from ..result import Status
from ..schedule.sequence import in_stage_order, last_reads, profile
from ..settings import Settings
from ..solvers import get_solver

SECONDS = 6.0
"""For one MILP."""
FIRST_SIZE = 24.0
SMALLEST = 6.0
GROWTH = 1.1
SHRINKAGE = 0.8
"""Free operations at first and at least, and how many times as many after a MILP that was solved and after one that was not in its time."""
MOST_DECISIONS = 5000
"""Binaries of one MILP: more take longer to build than to solve."""
PATIENCE = 24
"""MILPs in a row without a better schedule after which no more are tried."""
MOST_PARTS = 4
"""Of the graph that are free at a time."""
FULL = 0.98
"""The share of the peak from which on memory counts as full."""
FAR = 0.02
"""The share of all operations between two reads of a value from which on dropping it in between may help."""
GAP = 1e-5
"""Improvements come in small steps."""
CHEAPER = 1 - 1e-9
MOST_OPERATIONS = 3000
"""Building takes seconds for graphs of this size, and does not look at the clock."""


def improve(
    problem: Problem, settings: Settings, watch: Watch, incumbent: tuple[int, ...], *, patience: int = PATIENCE
) -> tuple[int, ...] | None:
    """A cheaper schedule that fits, with first computations in the order of the incumbent, which must fit; None if none was found.

    The same for the same seed, unless time runs out. Nothing is tried on graphs so large that building the models takes too long.
    """
    if problem.count > MOST_OPERATIONS:
        return None
    order = tuple(dict.fromkeys(incumbent))
    search = _Neighbourhoods(permuted(problem, order), settings, watch)
    found = search.run(in_permuted(order, incumbent), patience)
    return None if found is None else in_original(order, found)


class _Neighbourhoods:
    """The best schedule so far, and how much of it may be free for a MILP to be solved in its time."""

    def __init__(self, problem: Problem, settings: Settings, watch: Watch) -> None:
        self.problem = problem
        self.settings = replace(settings, gap=min(settings.gap, GAP))
        self.watch = watch
        self.random = random.Random(settings.seed)
        self.size = FIRST_SIZE

    def run(self, incumbent: tuple[int, ...], patience: int) -> tuple[int, ...] | None:
        problem, watch = self.problem, self.watch
        best = in_stage_order(problem, incumbent)
        made = profile(problem, best)
        if made.peak > problem.budget:
            return None
        better = best if made.cost < profile(problem, incumbent).cost * CHEAPER else None
        cost = made.cost
        watch.on_event(Event("neighbourhoods", cost))
        tried = 0
        while tried < patience and not watch.expired and (around := self.draw(best)) is not None:
            tried += 1
            found = self.solve(around, best)
            made = profile(problem, found)
            if made.peak <= problem.budget and made.cost < cost * CHEAPER:
                best, better, cost, tried = found, found, made.cost, 0
                watch.on_event(Event("neighbourhoods", cost))
        return better

    def draw(self, best: tuple[int, ...]) -> Around | None:
        """Some operations around one that is recomputed and others that could be, or are, instead; None if nothing is recomputed."""
        again = sorted(operation for operation, times in Counter(best).items() if times > 1)
        if not again:
            return None
        full = _kept_when_full(self.problem, best)
        seeds = [self.random.choice(again)]
        seeds += [self.random.choice(self.random.choice((full or again, again))) for _ in range(self.random.randrange(MOST_PARTS))]
        size = int(self.size)
        while True:
            operations = frozenset(self.grow(seeds, size))
            around = Around.of(self.problem, best, operations, _far_readers(self.problem, operations))
            if around is None or size <= SMALLEST or free_decisions(self.problem, around) <= MOST_DECISIONS:
                return around
            size = int(max(SMALLEST, size * SHRINKAGE))
            self.size = size

    def grow(self, seeds: list[int], size: int) -> set[int]:
        """The operations nearest to each of the seeds in turn. What runs backward is hardly worth recomputing."""
        problem = self.problem
        found: set[int] = set()
        queues = deque(deque((seed,)) for seed in seeds)
        while queues and len(found) < size:
            queue = queues.popleft()
            if not queue:
                continue
            queues.append(queue)
            operation = queue.popleft()
            if operation in found or problem.pinned[operation]:
                continue
            found.add(operation)
            near = [problem.producer[value] for value in problem.inputs[operation]]
            near += [reader for value in problem.outputs[operation] for reader in problem.consumers[value] if not problem.backward[reader]]
            self.random.shuffle(near)
            queue.extend(near)
        return found

    def solve(self, around: Around, best: tuple[int, ...]) -> tuple[int, ...]:
        formulated = build_neighbourhood(self.problem, around)
        watch = self.watch.part(SECONDS)
        result = get_solver(self.settings.solver).solve(formulated.form, self.settings, watch, formulated.start(best))
        solved = result.status is Status.OPTIMAL
        self.size = min(self.size * GROWTH, self.problem.count) if solved else max(SMALLEST, self.size * SHRINKAGE)
        return best if result.values is None else formulated.sequence(result.values)


def _far_readers(problem: Problem, operations: Iterable[int]) -> Iterator[int]:
    """Who reads what these operations make long after it was made or read before: it may be made again for them."""
    for operation in operations:
        for value in problem.outputs[operation]:
            for before, reader in pairwise((operation, *problem.consumers[value])):
                if reader - before > FAR * problem.count:
                    yield reader


def _kept_when_full(problem: Problem, sequence: tuple[int, ...]) -> list[int]:
    """Whose values are in memory at some moment when it is full."""
    made, frees = profile(problem, sequence), last_reads(problem, sequence)
    alive: set[int] = set()
    found: set[int] = set()
    for position, operation in enumerate(sequence):
        alive.update(problem.outputs[operation])
        if made.memory[position] >= FULL * made.peak:
            found.update(problem.producer[value] for value in alive if problem.size[value])
        alive.difference_update(frees[position])
    return sorted(operation for operation in found if not problem.pinned[operation])
