"""Last-node, the opposite of keep-all: almost nothing is kept, almost everything is recomputed for each backward operation."""

from __future__ import annotations

from ..events import Watch
from ..model.problem import Problem
from ..result import Result
from ..settings import Settings
from .choice import judged, too_long
from .forward import forward_pass
from .retention import Retention


def last_node(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Keep of the forward pass only what was just computed and what the next operation reads; recompute all else when it is needed."""
    retention = Retention(problem)
    retention.hold_in_use()
    forward = forward_pass(problem)
    forward.hold_the_rest(retention)
    for operation in forward.operations:
        retention.hold(operation, operation + 1, operation + 1)
    sequence = retention.sequence()
    return too_long() if sequence is None else judged(problem, sequence)
