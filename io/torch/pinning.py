"""What must run exactly once, and in the order it was traced."""

from __future__ import annotations

import torch
from torch.fx import Node

from .internals import is_higher_order, is_operator, is_sideeffect_namespace

_aten = torch.ops.aten
_ATTENTION = (
    _aten._scaled_dot_product_flash_attention,
    _aten._scaled_dot_product_flash_attention_for_cpu,
    _aten._scaled_dot_product_efficient_attention,
    _aten._scaled_dot_product_cudnn_attention,
    _aten._scaled_dot_product_fused_attention_overrideable,
)


def argument(node: Node, name: str) -> object:
    """An argument of a node by the name in the operator's schema; the default if it was not passed."""
    if name in node.kwargs:
        return node.kwargs[name]
    for place, stated in enumerate(node.target._schema.arguments):
        if stated.name == name:
            return node.args[place] if place < len(node.args) else stated.default_value
    return None


def draws_random_numbers(node: Node) -> bool:
    """True for random operators, except dropout that is off and attention without dropout, which carry the same tag."""
    if not is_operator(node.target) or torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    packet = node.target.overloadpacket
    if packet is _aten.native_dropout:
        return argument(node, "train") is not False and argument(node, "p") != 0.0
    if packet in _ATTENTION:
        return argument(node, "dropout_p") != 0.0
    return True


def has_order(node: Node) -> bool:
    """True if it must keep its place among its like: random numbers come from one stream, and all machines must meet at a collective."""
    return draws_random_numbers(node) or is_higher_order(node.target) or is_sideeffect_namespace(node.target)


def runs_once(node: Node) -> bool:
    """True if a second run could give another result, or has an effect besides its result."""
    target = node.target
    if not is_operator(target):
        return True
    tags = target.tags
    return has_order(node) or target._schema.is_mutable or torch.Tag.data_dependent_output in tags or torch.Tag.dynamic_output_shape in tags


def can_be_merged(node: Node) -> bool:
    """True if two of it with the same arguments are one."""
    return is_operator(node.target) and not runs_once(node) and node.target.overloadpacket not in (_aten.empty, _aten.empty_strided)
