"""Which values are kept in which stages, and the sequence of operations that follows.

Stage t ends with the first computation of operation t, as in the paper. A strategy says into which stages each value is kept (the paper's
S); everything else that a stage needs is computed in it, once, in topological order (the smallest R for this S). Nothing is recomputed
before it is read: a value that should be kept from a stage on, but was dropped before, is recomputed for its first reader.
"""

from __future__ import annotations

from bisect import bisect_right

from ..model.problem import Problem

Interval = tuple[int, int]
"""First and last stage into which a value is kept."""


class Retention:
    """Collects the stages into which values are kept, then builds the sequence.

    Values of pinned operations cannot be recomputed, and graph outputs must be in memory at the end: both are always kept.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._held: list[list[Interval]] = [[] for _ in problem.size]
        end = problem.count - 1
        for value, producer in enumerate(problem.producer):
            if problem.kept[value] or problem.pinned[producer]:
                self._held[value].append((producer + 1, end))

    def hold(self, operation: int, first: int, last: int) -> None:
        """Keep the outputs of an operation into stages first to last."""
        begin = max(first, operation + 1)
        if begin <= last:
            for value in self._problem.outputs[operation]:
                self._held[value].append((begin, last))

    def hold_to_the_end(self, operation: int) -> None:
        """Keep the outputs of an operation until their last read, so that it is never recomputed."""
        self.hold(operation, operation + 1, self._problem.count - 1)

    def hold_until(self, value: int, stage: int) -> None:
        """Keep one value from its first computation until this stage."""
        self._held[value].append((self._problem.producer[value] + 1, stage))

    def hold_for_readers(self) -> None:
        """Keep every value into the stages of its readers: if it was computed just before, it is not recomputed."""
        for value, users in enumerate(self._problem.consumers):
            self._held[value].extend((user, user) for user in users)

    def hold_in_use(self) -> None:
        """Keep a value from one stage to the next if the first makes or reads it and the next one reads it."""
        for value, users in enumerate(self._problem.consumers):
            before = self._problem.producer[value]
            for user in users:
                if user == before + 1:
                    self._held[value].append((user, user))
                before = user

    def sequence(self, times: int = 200) -> tuple[int, ...] | None:
        """Every operation in order, each preceded by the recomputations it needs.

        None if it grows so long that, in a large graph, operations would run this many times on average.
        """
        inputs, outputs, producer = self._problem.inputs, self._problem.outputs, self._problem.producer
        most = times * (self._problem.count + 500)
        spans = [_merged(intervals) for intervals in self._held]
        starts = [[first for first, _ in span] for span in spans]
        held_until = [-1] * len(spans)
        chosen: list[int] = []
        for stage in range(self._problem.count):
            needed = {stage}
            pending = [stage]
            while pending:
                for value in inputs[pending.pop()]:
                    maker = producer[value]
                    if held_until[value] < stage and maker not in needed:
                        needed.add(maker)
                        pending.append(maker)
            if len(chosen) + len(needed) > most:
                return None
            for operation in sorted(needed):
                chosen.append(operation)
                for value in outputs[operation]:
                    place = bisect_right(starts[value], stage + 1) - 1
                    held_until[value] = spans[value][place][1] if place >= 0 else -1
        return tuple(chosen)


def _merged(intervals: list[Interval]) -> list[Interval]:
    """Ascending and disjoint: intervals that overlap or touch are merged."""
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return merged
