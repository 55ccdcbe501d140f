"""What the placeholders and outputs of a traced graph stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch.fx import Node

PARAMETERS, BUFFERS, INPUTS, CONSTANTS = "parameters", "buffers", "inputs", "constants"
"""Kinds of fixed memory."""


@dataclass(frozen=True)
class Roles:
    """A training step that runs in two parts (torch.compile) has tangents; a program that runs in one (torch.export) has none."""

    fixed: Mapping[Node, str]
    """The kind of fixed memory of each placeholder that is in memory all the time."""
    returned: tuple[Node, ...]
    """What is in memory at the end: gradients."""
    gradients: tuple[Node, ...] = ()
    """Of these, the gradients of parameters, which stay after the step."""
    tangents: tuple[Node, ...] = ()
    """Placeholders that the caller makes between the two parts."""
    held: tuple[Node, ...] = ()
    """Outputs of the forward pass, which the caller holds from the end of the first part to the end of the step."""
    forward_count: int = 0
    """How many outputs of the graph, of any kind, belong to the first part; they come first."""
    written: Mapping[Node, Node] = field(default_factory=dict)
    """Placeholders that the step writes to between the two parts (running statistics), and their new values."""
    backward: frozenset[Node] = frozenset()
    """The nodes of the backward pass."""
    inner_peak_bytes: int = 0
    """The most that other graphs take between the two parts (a model with graph breaks), above what they leave behind."""
    inner_left_bytes: int = 0
    """What other graphs leave behind to the end of the step: gradients of their parameters."""
