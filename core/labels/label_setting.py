"""Finding the labels of a tail: which values to track, in terms of bits, and back from what the kernels found (`tail.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from ..events import Watch
from ..jit.tables import Table, filled
from ..model.precedence import Flags, Precedence
from ..model.problem import Problem
from ..params import PARAMS
from .label_kernels import MOST_BITS, OPERATION, SETTLED, WORD, new_search, set_labels
from .tail import Label, Tail

UNITS = 10**15
"""Costs are whole numbers of this part of the ideal cost, rounded down: sums do not depend on their order."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work a tail may be."""

    labels: int
    """That are looked at, each time."""
    rounds: int
    """How often it is asked what labels use."""


def find_tail(problem: Problem, precedence: Precedence, begin: int, dearest: float, effort: Effort, watch: Watch) -> Tail | None:
    """The labels of the tail that begins with an operation, within some effort; None if they say nothing.

    First only the largest values are tracked, then smaller ones, as long as that makes the cheapest label dearer. What labels use as if it
    were there for nothing says which others are worth it. Labels dearer than `dearest` are not told apart.
    """
    best: Tail | None = None
    tracked: list[int] = []
    for share in PARAMS.tail_large:
        wider = _large(problem, precedence, begin, int(share * problem.available))
        tail = labels_by(problem, precedence, begin, wider, dearest, effort.labels) if wider != tracked else None
        if tail is not None and (best is None or tail.least > best.least):
            tracked, best = wider, tail
    room = MOST_BITS
    for _ in range(effort.rounds):
        used = [] if best is None else _used(problem, tracked, best)[: min(room, MOST_BITS - len(tracked))]
        if best is None or not used or watch.expired:
            break
        tail = labels_by(problem, precedence, begin, sorted([*tracked, *used]), dearest, effort.labels)
        if tail is not None and tail.least >= best.least:
            tracked, best = sorted([*tracked, *used]), tail
        else:
            room = len(used) // 2
    return best if best is not None and best.least > 0.0 else None


def labels_by(problem: Problem, precedence: Precedence, begin: int, tracked: Sequence[int], dearest: float, most: int) -> Tail | None:
    """The labels by some values; None if there are too many values or first computations to tell apart."""
    if not tracked or len(tracked) > MOST_BITS:
        return None
    known = frozenset(tracked)
    relatives = precedence.relatives(begin)
    once = np.array(problem.pinned) & (relatives.ancestors | relatives.descendants)  # others may come first in the tail or before it
    once[begin] = problem.pinned[begin]
    makers = sorted({maker for value in tracked if not once[maker := problem.producer[value]]})
    touched = [
        operation
        for operation in np.flatnonzero(relatives.descendants).tolist()
        if not known.isdisjoint(problem.inputs[operation]) or not known.isdisjoint(problem.outputs[operation])
    ]
    steps = _fewer(problem, touched, set(makers), known)
    return None if steps is None else _Search(problem, precedence, tracked, [*steps, begin], makers).tail(dearest, most)


def _large(problem: Problem, precedence: Precedence, begin: int, large: int) -> list[int]:
    """The large values that a tail reads or makes, and those of which they are made."""
    found: dict[int, None] = {}
    operations = [begin, *np.flatnonzero(precedence.relatives(begin).descendants).tolist()]
    waiting = [value for operation in operations for value in (*problem.inputs[operation], *problem.outputs[operation])]
    while waiting:
        value = waiting.pop()
        if value in found or problem.size[value] < large:
            continue
        found[value] = None
        waiting.extend(problem.inputs[problem.producer[value]])
    return sorted(found)


def _used(problem: Problem, tracked: Sequence[int], tail: Tail) -> list[int]:
    """What the cheapest labels use as if it were there for nothing, the largest first: what recomputations read; if there is nothing of
    the kind, what is in memory when a label really takes too much."""
    cheapest = [label for label in tail.labels[: PARAMS.tail_asked] if label.operations]
    known, least = set(tracked), PARAMS.tail_least * problem.available
    read = {value for label in cheapest for operation in label.again for value in problem.inputs[operation]}
    held = {value for label in cheapest for value in _held_at_worst(problem, label)}
    for used in (read, held):
        chosen = [value for value in used - known if problem.size[value] >= least]
        if chosen:
            return sorted(chosen, key=lambda value: (-problem.size[value], value))
    return []


def _held_at_worst(problem: Problem, label: Label) -> set[int]:
    """What is in memory beside what is just read and made when a label takes most, everything counted; if that is more than there is."""
    awaited: set[int] = set()
    worst, held = problem.available, set[int]()
    for operation in reversed(label.operations):
        now = {*problem.inputs[operation], *problem.outputs[operation]}
        taken = sum(problem.size[value] for value in awaited | now) + problem.workspace[operation]
        if taken > worst:
            worst, held = taken, awaited - now
        awaited = awaited.difference(problem.outputs[operation]).union(problem.inputs[operation])
    return held


def _fewer(problem: Problem, touched: Sequence[int], makers: set[int], known: frozenset[int]) -> list[int] | None:
    """No more first computations than there are bits: those that make nothing large can be left out, those that take least first."""
    room = MOST_BITS - 1
    if len(touched) <= room:
        return list(touched)

    def taken(operation: int) -> int:
        values = {*problem.inputs[operation], *problem.outputs[operation]} & known
        return sum(problem.size[value] for value in values) + problem.workspace[operation]

    required = [operation for operation in touched if operation in makers or not known.isdisjoint(problem.outputs[operation])]
    if len(required) > room:
        return None
    others = sorted(set(touched).difference(required), key=taken, reverse=True)
    return sorted([*required, *others[: room - len(required)]])


def _private(problem: Problem, ancestors: Flags, makers: Sequence[int], steps: set[int]) -> set[int]:
    """Operations for one step that runs once: they run once too, in the tail or before it, and cost nothing more in any schedule."""
    once = steps.difference(makers)
    found: set[int] = set()
    for maker in reversed(makers):
        made = problem.outputs[maker]
        readers = {reader for value in made for reader in problem.consumers[value]}
        is_inner = not ancestors[maker] and maker not in steps and not any(problem.kept[value] for value in made)
        if is_inner and len(readers) == 1 and readers <= once | found:
            found.add(maker)
    return found


class _Search:
    """The operations of a tail in terms of bits."""

    def __init__(
        self, problem: Problem, precedence: Precedence, tracked: Sequence[int], steps: Sequence[int], makers: Sequence[int]
    ) -> None:
        self.problem, self.steps, self.makers = problem, steps, makers
        self.bit = {value: 1 << place for place, value in enumerate(tracked)}
        self.tracked = tracked
        self.step_of = {operation: step for step, operation in enumerate(steps)}
        after = [
            sum(1 << step for step, other in enumerate(steps) if relatives.descendants[other])
            for relatives in map(precedence.relatives, steps)
        ]
        self.private = _private(problem, precedence.relatives(steps[-1]).ancestors, makers, set(steps))
        self.step_table = self._table(steps, after)
        self.again_table = self._table(makers, [0] * len(makers))
        self.sizes = np.array([problem.size[value] for value in tracked], dtype=np.int64)

    def tail(self, dearest: float, most: int) -> Tail:
        problem = self.problem
        unit = problem.ideal_cost / UNITS or 1.0
        search = new_search(self.step_table, self.again_table, self.sizes, most)
        low, high = _words(self._bits(value for value in self.tracked if problem.kept[value]))
        set_labels(search, low, high, problem.available, int(min(dearest / unit, 2.0**61)))
        totals = search.totals[0]
        labels = search.labels[: int(totals["labels"])]
        last = len(self.steps) - 1
        done = labels["done_high"] >> (last - WORD) & 1 if last >= WORD else labels["done_low"] >> last & 1
        ends = np.flatnonzero((labels["state"] == SETTLED) & (done == 1) & (labels["cost"] <= totals["frontier"]))
        found = [self._label(labels, int(number), unit) for number in ends.tolist()]
        if totals["frontier"] < 1 << 62:
            found.append(Label(frozenset(), float(totals["frontier"]) * unit, ()))
        certain = frozenset(self.makers) & frozenset(self.steps)
        makers = tuple(maker for maker in self.makers if maker not in self.private)
        return Tail(self.steps[-1], makers, certain, tuple(_undominated(found)))

    def _label(self, labels: Table, number: int, unit: float) -> Label:
        row = labels[number]
        bits = int(row["need_low"]) | int(row["need_high"]) << WORD
        needed = frozenset(value for value, bit in self.bit.items() if bits & bit)
        operations: list[int] = []
        again: set[int] = set()
        while labels[number]["then"] >= 0:
            operation = int(labels[number]["operation"])
            operations.append(self.steps[operation] if operation >= 0 else self.makers[-1 - operation])
            if operation < 0:
                again.add(operations[-1])
            number = int(labels[number]["then"])
        return Label(needed, float(row["cost"]) * unit, tuple(operations), frozenset(again))

    def _bits(self, values: Iterable[int]) -> int:
        return sum(self.bit.get(value, 0) for value in values)

    def _table(self, operations: Sequence[int], after: Sequence[int]) -> Table:
        problem = self.problem
        unit = problem.ideal_cost / UNITS or 1.0
        reads = [_words(self._bits(problem.inputs[operation])) for operation in operations]
        makes = [_words(self._bits(problem.outputs[operation])) for operation in operations]
        behind = [_words(steps) for steps in after]
        return filled(
            OPERATION,
            len(operations),
            reads_low=[low for low, _ in reads],
            reads_high=[high for _, high in reads],
            makes_low=[low for low, _ in makes],
            makes_high=[high for _, high in makes],
            after_low=[low for low, _ in behind],
            after_high=[high for _, high in behind],
            workspace=[problem.workspace[operation] for operation in operations],
            price=[0 if operation in self.private else int(problem.cost[operation] / unit) for operation in operations],
            step=[self.step_of.get(operation, -1) for operation in operations],
        )


def _words(bits: int) -> tuple[int, int]:
    return bits & (1 << WORD) - 1, bits >> WORD


def _undominated(labels: Sequence[Label]) -> list[Label]:
    """Without those that need more than another and are no cheaper."""
    kept: list[Label] = []
    for label in sorted(labels, key=lambda each: (each.cost, len(each.needed))):
        if not any(other.needed <= label.needed for other in kept):
            kept.append(label)
    return kept
