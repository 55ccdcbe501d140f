"""The other extreme: almost nothing is kept, almost everything is computed again for each backward operation."""

from __future__ import annotations

from ..events import Watch
from ..problem import Problem
from ..result import Solution
from ..settings import Settings
from .forward import forward_pass
from .outcome import judged, too_long
from .retention import Retention


def last_node(problem: Problem, settings: Settings, watch: Watch) -> Solution:
    """Keep of the forward pass only what was just computed and what the next operation reads; recompute all else when it is needed."""
    retention = Retention(problem)
    retention.hold_in_use()
    forward = forward_pass(problem)
    forward.hold_the_rest(retention)
    for operation in forward.operations:
        retention.hold(operation, operation + 1, operation + 1)
    sequence = retention.sequence()
    return too_long() if sequence is None else judged(problem, sequence)
