"""Trace a model's training step without running it: with fake tensors, which have sizes but no data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.fx import GraphModule

from ...core.errors import CheckmateError, InputError
from .internals import fake_tensors, input_kind, trace_joint
from .joint_graphs import joint_roles
from .traced import TracedGraph, read_traced


def trace_step(model: torch.nn.Module, make_inputs: Callable[[int], Any], size: int) -> tuple[TracedGraph, GraphModule]:
    """The training step of a model for inputs of this size. `make_inputs` returns a tensor, a tuple, or a dict of keywords; what it makes
    with torch takes no memory."""
    with fake_tensors():
        made = make_inputs(size)
    inputs: tuple[Any, ...] = () if isinstance(made, Mapping) else tuple(made) if isinstance(made, (tuple, list)) else (made,)
    try:
        joint, count = trace_joint(model, inputs, dict(made) if isinstance(made, Mapping) else {})
    except CheckmateError:
        raise
    except Exception as error:
        raise InputError(
            f"{type(model).__name__} cannot be traced for inputs of size {size}: {type(error).__name__}: {_first_line(error)}"
        ) from error
    return read_step(joint, count, type(model).__name__), joint


def read_step(joint: GraphModule, forward_count: int, name: str) -> TracedGraph:
    """Read a joint graph whose placeholders say what they are."""
    placeholders = joint.graph.find_nodes(op="placeholder")
    kinds = [input_kind(node) for node in placeholders]
    parameters = [number for number, kind in enumerate(kinds) if kind == "parameter"]
    static = [number for number, kind in enumerate(kinds) if kind is not None]
    roles = joint_roles(joint, forward_count, static, parameters)
    if not roles.tangents:
        raise InputError(f"{name}: nothing to train: no output depends on a parameter that requires a gradient")
    return read_traced(joint.graph, roles, name)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")[:300]
