"""How to cut the order of first computations into stages, and how large a model that gives.

One operation per stage is exact and quadratic in the graph; a few dozen stages keep a model of thousands of operations small.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from ..model.problem import Problem, horizons
from ..schedule.sequence import profile


def single_runs(problem: Problem) -> tuple[range, ...]:
    """One first computation per stage: the paper's search space. Graph outputs may be made again in one stage more."""
    return (*(range(index, index + 1) for index in range(problem.count)), *closing_run(problem))


def repeated_runs(problem: Problem) -> tuple[range, ...]:
    """Two passes per stage: an operation may be recomputed twice between two first computations, unlike in the paper."""
    return tuple(part for run in single_runs(problem) for part in (range(run.start, run.start), run))


def merged_runs(problem: Problem, count: int) -> tuple[range, ...]:
    """About `count` stages, finer where keeping everything would exceed the budget, with a cut at the peak."""
    if count >= problem.count - 1:
        return single_runs(problem)
    memory = profile(problem, range(problem.count)).memory
    weight = [3.0 if used > problem.budget else 1.0 for used in memory]
    passed = list(accumulate(weight))
    cuts = {0, problem.count, memory.index(max(memory)) + 1}
    goal = 1
    for index, total in enumerate(passed):
        if total >= goal * passed[-1] / count:
            cuts.add(index + 1)
            goal = int(total * count / passed[-1]) + 1
    return (*(range(start, stop) for start, stop in pairwise(sorted(cuts))), *closing_run(problem))


def closing_run(problem: Problem) -> tuple[range, ...]:
    """A stage without first computations, where there are graph outputs to make again."""
    return (range(problem.count, problem.count),) if any(problem.kept) else ()


def liveness_entries(problem: Problem, runs: Sequence[range]) -> int:
    """About how many nonzeros the liveness form has, counted without building it."""
    last = horizons(problem)
    weight = [3 + 7 * len(problem.outputs[i]) + 10 * len(problem.inputs[i]) for i in range(problem.count)]
    entries = 0
    expiring: list[list[int]] = [[] for _ in range(problem.count + 1)]
    for operation, end in enumerate(last):
        expiring[end].append(operation)
    alive = gone = 0
    for run in runs:
        while gone < run.start:
            alive -= sum(weight[operation] for operation in expiring[gone] if operation < run.start)
            gone += 1
        alive += sum(weight[operation] for operation in run)
        entries += alive
    return entries
