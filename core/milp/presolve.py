"""Presolve for any-order programs: a smaller problem whose programs have the same value, or a lower one that is as good as the same.

Half the operations of a training graph belong to runs that nobody would tear apart: the taps of a weight's gradient, a cast and what
reads it. An any-order program (`any_order.py`) checks memory at its breakpoints only, so it does not matter to it what happens within a
stage. Two operations that some cheapest solution computes in the same stages, always, can be one. In what follows an operation `first`
makes values that only one operation, `reader`, reads; neither is a breakpoint; "held" means in memory at a breakpoint.

- **delay**: what `first` makes takes at least as much memory as what `first` reads and `reader` does not. Then hold that instead, and
  compute `first` in the stage of `reader`. If `reader` may be computed several times, this takes one more condition, that what it makes
  takes no more than what `first` makes: instead of holding the latter for a second computation of `reader`, hold the result of the first.
- **advance**: `reader` reads nothing that `first` does not read or make, and what it makes takes no more than what `first` makes. Then
  compute `reader` in the stage of `first`, and hold its results instead.
- **siblings**: two operations with one reader, which read the same values, and all three are computed once. Whichever comes first can
  wait for the other, whose stage has what both read.

An operation is computed once, in some cheapest solution, if it is pinned, if nobody reads what it makes, or if its only reader is
computed once. Where the order of first computations is given, neither may wait, and all this holds within a stage only. Values that take
no memory are held for nothing once they were made, so they do not count as read where an operation is delayed.

Two relaxations come on top, both of which can only lower the value: the smallest values, `presolve_small` of the memory to spare in all,
are taken to need none; and where a value that only one operation is waiting for is a little larger than what that one makes of it, by
`presolve_nearly`, it is taken to be as small (a padded input and the slices of it, which could not be delayed else).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..model.floors import least_memory
from ..model.problem import Problem
from ..params import PARAMS


@dataclass(frozen=True, eq=False)
class Presolved:
    """A smaller problem, and for each of its operations those of the original that it stands for, in their order."""

    problem: Problem
    members: tuple[tuple[int, ...], ...]
    """The last of them makes what others read."""
    values: tuple[int, ...]
    """For each value of the smaller problem the original one."""

    @cached_property
    def number(self) -> dict[int, int]:
        """The operation of the smaller problem of which an original one is the last member."""
        return {members[-1]: number for number, members in enumerate(self.members)}

    @cached_property
    def group_of(self) -> NDArray[np.int64]:
        """For each original operation the one it belongs to."""
        groups = np.zeros(sum(map(len, self.members)), dtype=np.int64)
        for number, members in enumerate(self.members):
            groups[list(members)] = number
        return groups

    def expand(self, operations: Iterable[int]) -> list[int]:
        """The original operations, in their order."""
        return sorted(member for operation in operations for member in self.members[operation])

    def contract(self, sequence: Iterable[int]) -> list[int]:
        """Of a sequence of original operations, those that are last members."""
        return [self.number[operation] for operation in sequence if operation in self.number]


def presolve(
    problem: Problem, breakpoints: Collection[int] = (), stage_of: NDArray[np.int64] | None = None, *, exact: bool = False
) -> Presolved:
    """Merge operations, but no breakpoints; without the relaxations if it has to be exact.

    If first computations are in a given order, `stage_of` says in which stage each is, and only operations of one stage are merged.
    """
    return _Merger(problem, frozenset(breakpoints), None if stage_of is None else stage_of.tolist(), exact=exact).run()


def unchanged(problem: Problem) -> Presolved:
    """The problem as it is, in the same form."""
    return Presolved(problem, tuple((operation,) for operation in range(problem.count)), tuple(range(len(problem.size))))


class _Merger:
    """The problem while operations are merged: `last` of those that are one stands for all."""

    def __init__(self, problem: Problem, breakpoints: frozenset[int], stage_of: list[int] | None, *, exact: bool) -> None:
        self.problem, self.breakpoints, self.stage_of, self.exact = problem, breakpoints, stage_of, exact
        self.size = _without_the_smallest(problem) if not exact else list(problem.size)
        self.inputs: list[set[int]] = [set(read) for read in problem.inputs]
        self.outputs: list[list[int]] = [
            [value for value in made if problem.kept[value] or problem.consumers[value]] for made in problem.outputs
        ]
        self.readers: list[set[int]] = [set(users) for users in problem.consumers]
        self.maker = list(problem.producer)
        self.pinned = list(problem.pinned)
        self.members: list[list[int]] = [[operation] for operation in range(problem.count)]
        self.is_once = [False] * problem.count
        self.waiting: list[int] = []
        self.is_waiting = [True] * problem.count

    def run(self) -> Presolved:
        """From the end to the beginning, so that readers are known to be computed once before what they read is looked at; what is near a
        change is looked at again."""
        self.waiting = list(range(self.problem.count))
        while self.waiting:
            operation = self.waiting.pop()
            self.is_waiting[operation] = False
            if self.members[operation]:
                self._look_at(operation)
        return self._presolved()

    def _look_at(self, first: int) -> None:
        """Merge an operation with another, if a rule allows it."""
        reader = self._only_reader(first)
        if not self.is_once[first] and self._is_computed_once(first, reader):
            self.is_once[first] = True
            self._look_again(self.inputs[first])
        if first in self.breakpoints or reader < 0 or reader in self.breakpoints or not self._share_a_stage(first, reader):
            return
        if self._may_delay(first, reader) or self._may_advance(first, reader):
            self._become_one(first, reader)
            return
        sibling = self._sibling(first, reader)
        if sibling is not None:
            self._become_one(min(first, sibling), max(first, sibling))

    def _look_again(self, values: Iterable[int]) -> None:
        """At who makes some values and who reads them."""
        for value in values:
            for operation in (self.maker[value], *self.readers[value]):
                if not self.is_waiting[operation]:
                    self.is_waiting[operation] = True
                    self.waiting.append(operation)

    def _is_computed_once(self, operation: int, reader: int) -> bool:
        """In a given order an operation may not wait for its reader, nor a graph output for the end: they may have to be recomputed
        there."""
        if self.pinned[operation]:
            return True
        if reader < 0:
            return reader == -1 and (self.stage_of is None or not self.outputs[operation])
        return self.is_once[reader] and self._share_a_stage(operation, reader)

    def _share_a_stage(self, one: int, other: int) -> bool:
        return self.stage_of is None or self.stage_of[one] == self.stage_of[other]

    def _only_reader(self, operation: int) -> int:
        """The only operation that reads what an operation makes; -1 if none does, -2 if several do or something of it is a graph output."""
        found = -1
        for value in self.outputs[operation]:
            users = self.readers[value]
            if not users and self.problem.kept[value]:
                continue
            if self.problem.kept[value] or len(users) > 1:
                return -2
            (user,) = users
            if found not in (-1, user):
                return -2
            found = user
        if found >= 0 and any(self.problem.kept[value] for value in self.outputs[operation]):
            return -2
        return found

    def _bytes(self, values: Collection[int]) -> int:
        return sum(self.size[value] for value in values)

    def _may_delay(self, first: int, reader: int) -> bool:
        makes = self._bytes(self.outputs[first])
        if not self.is_once[reader] and self._bytes(self.outputs[reader]) > makes:
            return False
        instead = [value for value in self.inputs[first] if self.size[value] and value not in self.inputs[reader]]
        if self._bytes(instead) <= makes:
            return True
        if self.exact or len(instead) != 1 or self.size[instead[0]] > PARAMS.presolve_nearly * makes or not self._is_inner(instead[0]):
            return False
        self.size[instead[0]] = makes
        self._look_again(instead)
        return True

    def _is_inner(self, value: int) -> bool:
        """Do only operations that are computed once read a value, and is it no graph output?"""
        return not self.problem.kept[value] and all(self.is_once[user] for user in self.readers[value])

    def _may_advance(self, first: int, reader: int) -> bool:
        makes = self.outputs[first]
        if self._bytes(self.outputs[reader]) > self._bytes(makes):
            return False
        return all(value in self.inputs[first] or value in makes for value in self.inputs[reader])

    def _sibling(self, first: int, reader: int) -> int | None:
        """An operation with the same reader that reads the same, all computed once."""
        if not (self.is_once[first] and self.is_once[reader]):
            return None
        reads = {value for value in self.inputs[first] if self.size[value]}
        makers = {self.maker[value] for value in self.inputs[reader]} - {first}
        for other in sorted(makers):
            if other in self.breakpoints or not self.is_once[other] or self._only_reader(other) != reader:
                continue
            if not self._share_a_stage(first, other):
                continue
            if {value for value in self.inputs[other] if self.size[value]} == reads:
                return other
        return None

    def _become_one(self, first: int, last: int) -> None:
        """`last` stands for both from now on. What only it read of the other is gone."""
        for value in self.inputs[first]:
            self.readers[value].discard(first)
            self.readers[value].add(last)
        self.inputs[last] |= self.inputs[first]
        for value in self.outputs[first]:
            self.maker[value] = last
            if self.readers[value] <= {last} and not self.problem.kept[value]:
                self.inputs[last].discard(value)
                self.readers[value].clear()
            else:
                self.outputs[last].append(value)
        few, many = sorted((self.members[first], self.members[last]), key=len)
        self.members[last] = many
        many += few
        self.pinned[last] = self.pinned[last] or self.pinned[first]
        self.is_once[last] = self.is_once[last] or self.is_once[first]
        self.members[first] = []
        self.inputs[first], self.outputs[first] = set(), []
        self._look_again((*self.inputs[last], *self.outputs[last]))

    def _presolved(self) -> Presolved:
        problem = self.problem
        operations = [operation for operation in range(problem.count) if self.members[operation]]
        number = {operation: position for position, operation in enumerate(operations)}
        values = [value for operation in operations for value in sorted(self.outputs[operation])]
        place = {value: position for position, value in enumerate(values)}
        inputs = [tuple(sorted(place[value] for value in self.inputs[operation])) for operation in operations]
        consumers: list[list[int]] = [[] for _ in values]
        for position, read in enumerate(inputs):
            for value in read:
                consumers[value].append(position)
        smaller = replace(
            problem,
            graph_operation=tuple(problem.graph_operation[operation] for operation in operations),
            graph_value=tuple(problem.graph_value[value] for value in values),
            cost=tuple(sum(problem.cost[member] for member in self.members[operation]) for operation in operations),
            workspace=tuple(self._workspace(operation) for operation in operations),
            pinned=tuple(self.pinned[operation] for operation in operations),
            backward=tuple(problem.backward[operation] for operation in operations),
            inputs=tuple(inputs),
            outputs=tuple(tuple(sorted(place[value] for value in self.outputs[operation])) for operation in operations),
            size=tuple(self.size[value] for value in values),
            producer=tuple(number[self.maker[value]] for value in values),
            consumers=tuple(tuple(users) for users in consumers),
            kept=tuple(problem.kept[value] for value in values),
        )
        return Presolved(smaller, tuple(tuple(sorted(self.members[operation])) for operation in operations), tuple(values))

    def _workspace(self, operation: int) -> int:
        """With what an operation makes and nobody reads, which is in memory while it runs."""
        unread = set(self.problem.outputs[operation]) - set(self.outputs[operation])
        return self.problem.workspace[operation] + sum(self.problem.size[value] for value in unread)


def _without_the_smallest(problem: Problem) -> list[int]:
    """Sizes, with the smallest taken to be none."""
    sizes = np.array(problem.size, dtype=np.int64)
    order = np.argsort(sizes, kind="stable")
    together = np.cumsum(sizes[order])
    spare = max(0, problem.budget - least_memory(problem).bytes)
    sizes[order[together <= PARAMS.presolve_small * spare]] = 0
    return [int(size) for size in sizes]
