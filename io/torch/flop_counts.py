"""Floating-point operations of a node, by torch's own formulas."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.fx import Node
from torch.utils.flop_counter import flop_registry

from .internals import is_operator, size_hint


def flops_of(node: Node, value: Any) -> float | None:
    """By formula for matrix products, convolutions and attention; None for the others, whose bytes count."""
    if not is_operator(node.target):
        return None
    formula = flop_registry.get(node.target.overloadpacket)
    if formula is None:
        return None
    try:
        arguments = [_shaped(argument) for argument in node.args]
        keywords = {name: _shaped(argument) for name, argument in node.kwargs.items()}
        found = float(formula(*arguments, **keywords, out_val=_shaped(value)))
    except Exception:  # a formula for other arguments than these
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _shaped(argument: Any) -> Any:
    """Tensors of the traced sizes in place of nodes."""
    if isinstance(argument, Node):
        return _shaped(argument.meta.get("val"))
    if isinstance(argument, torch.Tensor):
        return torch.empty([size_hint(size) or 1 for size in argument.shape], dtype=argument.dtype, device="meta")
    if isinstance(argument, (tuple, list)):
        return type(argument)(_shaped(item) for item in argument)
    return argument
