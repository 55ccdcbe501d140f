"""Which operations are the forward pass, and when the backward pass reaches each of them again.

The baselines were designed for training graphs whose backward pass mirrors the forward pass. Real graphs have several backward operations
for one forward operation, or none, and some graphs have no backward pass at all. The baselines accept all of these, with worse results.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from ..model.problem import Problem
from .retention import Retention


@dataclass(frozen=True, eq=False)
class ForwardPass:
    """The forward operations, ascending; the position of an operation among them is its rank. No slots, because of cached properties."""

    problem: Problem
    operations: tuple[int, ...]
    beside: tuple[int, ...] = ()
    """Operations that are neither backward nor needed by the backward pass, such as updates of running statistics."""

    @cached_property
    def rank(self) -> dict[int, int]:
        return {operation: rank for rank, operation in enumerate(self.operations)}

    @cached_property
    def neighbours(self) -> list[list[int]]:
        """By rank: the ranks of forward operations that an operation reads from or is read by."""
        around: list[set[int]] = [set() for _ in self.operations]
        for rank, operation in enumerate(self.operations):
            for value in self.problem.inputs[operation]:
                source = self.rank.get(self.problem.producer[value])
                if source is not None:
                    around[rank].add(source)
                    around[source].add(rank)
        return [sorted(ranks) for ranks in around]

    @property
    def is_chain(self) -> bool:
        """True if each operation reads from the one before it and from no other."""
        last = len(self.operations) - 1
        return all(ranks == [other for other in (rank - 1, rank + 1) if 0 <= other <= last] for rank, ranks in enumerate(self.neighbours))

    @cached_property
    def returns(self) -> list[int]:
        """By rank: the first stage in which the backward pass has reached an operation again. It falls as the rank rises.

        The position of a backward operation is the rank of the earliest forward value it reads. Where positions do not fall monotonically
        (a skip connection, a late reader of the loss), the nearest monotonically falling sequence is used instead.
        """
        stages: list[int] = []
        places: list[float] = []
        forward = self.rank
        skipped = {*self.operations, *self.beside}
        for stage in range(self.problem.count):
            if stage in skipped:
                continue
            read = [forward[maker] for maker in (self.problem.producer[value] for value in self.problem.inputs[stage]) if maker in forward]
            if read:
                stages.append(stage)
                places.append(float(min(read)))
        climbing = [-place for place in _falling(places)]
        found = []
        for rank in range(len(self.operations)):
            position = bisect_right(climbing, -(rank + 1.0))
            found.append(stages[position] if position < len(stages) else self.problem.count)
        return found

    def leaves(self, rank: int) -> int:
        """The last stage before the backward pass continues with lower ranks."""
        return self.returns[rank - 1] - 1 if rank > 0 else self.problem.count - 1

    def hold_the_rest(self, retention: Retention) -> None:
        """Operations outside the forward pass run once: keep their values until the last read, and inputs of `beside` until they run."""
        for operation in range(self.problem.count):
            if operation not in self.rank:
                retention.hold_to_the_end(operation)
        for operation in self.beside:
            for value in self.problem.inputs[operation]:
                retention.hold_until(value, operation)


def forward_pass(problem: Problem) -> ForwardPass:
    """The operations that are not marked as backward and that the backward pass depends on.

    If no operation is marked: those up to the moment when the number of values that still have a reader is largest. Values are counted, not
    bytes, because gradients of the first layers are often larger than everything the last layers keep.
    """
    if any(problem.backward):
        needed = _needed_by_backward(problem)
        others = [operation for operation, backward in enumerate(problem.backward) if not backward]
        forward, beside = ([operation for operation in others if needed[operation] is wanted] for wanted in (True, False))
        return ForwardPass(problem, tuple(forward), tuple(beside))
    change = [0] * (problem.count + 1)
    for value, users in enumerate(problem.consumers):
        if users:
            change[problem.producer[value]] += 1
            change[users[-1]] -= 1
    waiting, most, turn = 0, 0, 0
    for operation in range(problem.count):
        waiting += change[operation]
        if waiting > most:
            most, turn = waiting, operation
    return ForwardPass(problem, tuple(range(turn + 1)))


def _needed_by_backward(problem: Problem) -> list[bool]:
    """By operation: whether a backward operation reads its outputs, directly or through other operations."""
    needed = [False] * problem.count
    for operation in reversed(range(problem.count)):
        if needed[operation] or problem.backward[operation]:
            for value in problem.inputs[operation]:
                needed[problem.producer[value]] = True
    return needed


def _falling(places: list[float]) -> list[float]:
    """The non-increasing sequence that is nearest in least squares: rising neighbours are pooled into their mean."""
    pools: list[tuple[float, int]] = []
    for place in places:
        total, count = place, 1
        while pools and pools[-1][0] / pools[-1][1] < total / count:
            before, members = pools.pop()
            total, count = total + before, count + members
        pools.append((total, count))
    return [total / count for total, count in pools for _ in range(count)]
