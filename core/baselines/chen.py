"""The baselines of Chen et al. (2016): for chains, and generalized as in the paper (section 5.1, Table 1).

The AP versions checkpoint only articulation points of the forward pass. The linearized versions checkpoint any operation, as if the
topological order were a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..events import Watch
from ..model.problem import Problem
from ..result import Result
from ..settings import Settings
from .articulation import articulation_points
from .checkpoints import by_bytes, every_sqrt, with_checkpoints
from .choice import SWEEP_TIMES, Parameters, affordable_tries, cheapest, judged, not_a_chain, thinned, too_long
from .forward import ForwardPass, forward_pass


def chen_sqrt(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Chen et al.'s sqrt(n) checkpoints at equal distances; for forward passes that are chains."""
    forward = forward_pass(problem)
    return _sqrt(forward, _all(forward)) if forward.is_chain else not_a_chain("ap-sqrt or linearized-sqrt")


def ap_sqrt(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Chen et al.'s sqrt(n) checkpoints, chosen among the articulation points of the forward pass."""
    forward = forward_pass(problem)
    return _sqrt(forward, articulation_points(forward.neighbours))


def linearized_sqrt(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Chen et al.'s sqrt(n) checkpoints, chosen among all forward operations in topological order."""
    forward = forward_pass(problem)
    return _sqrt(forward, _all(forward))


def chen_greedy(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Chen et al.'s checkpoints at equal amounts of memory, the amount searched; for forward passes that are chains."""
    forward = forward_pass(problem)
    return _greedy(forward, _all(forward), watch) if forward.is_chain else not_a_chain("ap-greedy or linearized-greedy")


def ap_greedy(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Chen et al.'s checkpoints at equal amounts of memory, the amount searched, chosen among the articulation points."""
    forward = forward_pass(problem)
    return _greedy(forward, articulation_points(forward.neighbours), watch)


def linearized_greedy(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Chen et al.'s checkpoints at equal amounts of memory, the amount searched, chosen among all forward operations."""
    forward = forward_pass(problem)
    return _greedy(forward, _all(forward), watch)


def _all(forward: ForwardPass) -> range:
    return range(len(forward.operations))


def _sqrt(forward: ForwardPass, candidates: Sequence[int]) -> Result:
    sequence = with_checkpoints(forward, every_sqrt(candidates))
    return too_long() if sequence is None else judged(forward.problem, sequence)


def _greedy(forward: ForwardPass, candidates: Sequence[int], watch: Watch) -> Result:
    return cheapest(forward.problem, _greedy_tries(forward, candidates), watch)


def _greedy_tries(forward: ForwardPass, candidates: Sequence[int]) -> Iterator[tuple[Parameters, tuple[int, ...] | None]]:
    """Each distinct set of checkpoints that the amounts lead to."""
    problem = forward.problem
    total = sum(problem.size[value] for operation in forward.operations for value in problem.outputs[operation])
    known: set[tuple[int, ...]] = set()
    for amount in _amounts(total, len(candidates), affordable_tries(problem)):
        checkpoints = tuple(by_bytes(forward, candidates, amount))
        if checkpoints not in known:
            known.add(checkpoints)
            yield {"segment_bytes": amount}, with_checkpoints(forward, checkpoints, SWEEP_TIMES)


def _amounts(total: int, segments: int, tries: int) -> list[int]:
    """Amounts from a single segment to a checkpoint at every candidate: half evenly spaced, half for 1, 2, 3, ... equal segments."""
    even = [total * step // (tries // 2) for step in range(tries // 2)]
    equal = [total // parts for parts in thinned(range(1, segments + 1), tries // 2)]
    return sorted({*even, *equal}, reverse=True)
