"""The moment between the forward and the backward pass, as an operation of the graph.

With torch.compile, a training step runs in two parts: the forward graph returns its outputs to the caller, who calls `backward`; only then
the backward graph runs. So a schedule must compute every output of the forward pass before anything that depends on the gradients that the
caller passes in (the tangents), and the caller holds these outputs to the end of the step.

Both follow from one operation between the two, without any rule in the solver:

- It reads every output of the forward pass and makes the tangents. Whatever needs a tangent comes after it in every topological order, so
  after all outputs. An operation that neither feeds an output nor needs a tangent may be on either side, and it may: the schedule then says
  in which of the two graphs it runs.
- The operations that make the outputs are pinned, and the outputs are outputs of the graph. So they are computed once, and are in memory
  from then to the end. Reading them costs nothing more.
- It is pinned itself, so there is one such moment.

Values that the step writes into its inputs between the two parts (new running statistics) are read by it too, and are freed after it if
nothing needs them: that is what the runtime does. At the boundary itself the model counts them together with the tangents, although the
runtime frees them before the caller makes the tangents: a few bytes too many at a moment that is never the peak of a real step.

In a model with graph breaks, the other graphs of the step run between the two parts: what they need at most is the workspace of this
operation, and the gradients they leave behind are one of its outputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from torch.fx import Node

from ...core.model.graph import OperationSpec, ValueSpec

BOUNDARY = "(backward)"
"""The name of the operation. Names of nodes are identifiers of Python, so no node has it."""
KIND = "torch.boundary"
LEFT = "(gradients of other graphs)"


def is_held_by_engine(tangent: Node) -> bool:
    """True for the gradient of a loss: `loss.backward()` makes it and holds it until it returns. Other tangents come from the backward pass
    of what the caller computed from an output, and are freed as soon as they were read."""
    return bool(tangent.meta["val"].numel() == 1)


def boundary_operation(
    reads: Iterable[str], tangents: Iterable[ValueSpec], *, inner_peak_bytes: int = 0, inner_left_bytes: int = 0
) -> OperationSpec:
    """The operation between the two parts."""
    left = [ValueSpec(LEFT, inner_left_bytes)] if inner_left_bytes else []
    return OperationSpec(
        name=BOUNDARY,
        kind=KIND,
        inputs=tuple(dict.fromkeys(reads)),
        outputs=(*tangents, *left),
        workspace=inner_peak_bytes,
        backward=True,
        pinned=True,
    )
