"""`checkmate.torch.compile`, the backend of torch.compile, and the plans of a compiled model."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from ..core.errors import CheckmateError, InputError
from .options import parse_options
from .plan import Plan
from .session import Session, raising

_SESSIONS: dict[int, tuple[Mapping[str, Any], Session]] = {}
"""By the identity of the options: torch.compile passes the same object for every graph of a model. The entry keeps it alive."""
_COMPILED: list[weakref.ref[Session]] = []
"""Sessions of `compile`."""


def compile(model: Any, *, budget: str | int, dynamic: bool | None = None, fullgraph: bool = False, **options: Any) -> Any:
    """The same model or function, trained within a budget.

    `budget` covers everything that a training step holds: parameters, buffers, inputs, activations and gradients: bytes, `"8GB"`, or
    `"80%"` of the peak without recomputation. `reserve` is memory to leave free for what is outside, such as optimizer state. The other
    options are those of `CompileOptions`: `time_limit`, `gap`, `strategy`, `seed`, `threads`, `costs`, `device`, `pin`, `compiler`,
    `cache`, `progress`. `dynamic` and `fullgraph` are those of torch.compile.

    Gradients are bit-equal to those of the model itself. A budget that cannot be met raises `InfeasibleError` in the first step.
    """
    session = Session(parse_options({"budget": budget, **options}), model)
    _COMPILED.append(weakref.ref(session))
    compiled = torch.compile(model, backend=session, dynamic=dynamic, fullgraph=fullgraph)
    if isinstance(compiled, torch.nn.Module):
        compiled.register_forward_hook(lambda *_: session.warn_if_nothing_is_planned())
    return compiled


def backend(
    gm: GraphModule, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, mode: str | None = None
) -> Callable[..., Any]:
    """`torch.compile(model, backend="checkmate", options={"budget": "8GB"})`."""
    try:
        return _session_of({} if options is None else options, mode)(gm, inputs)
    except CheckmateError as error:
        return raising(error)


def _session_of(options: Mapping[str, Any], mode: str | None) -> Session:
    if mode is not None:
        raise InputError(f"mode={mode!r} is for Inductor; leave it out, or pass options={{'budget': ..., 'compiler': 'inductor'}}")
    if id(options) not in _SESSIONS:
        _SESSIONS[id(options)] = options, Session(parse_options(options))
    return _SESSIONS[id(options)][1]


def plans(model: Any = None) -> list[Plan]:
    """The plans of a compiled model after its first step, one for each graph and size; of all compiled models if none is given."""
    wanted = _tensors_of(model)
    return [
        plan
        for session in _sessions()
        for graph in session.graphs
        if wanted is None or any(id(tensor) in wanted for tensor in graph.tensors())
        for plan in graph.plans
    ]


def _sessions() -> list[Session]:
    compiled = [found for each in _COMPILED if (found := each()) is not None]
    return [*compiled, *(session for _, session in _SESSIONS.values())]


def _tensors_of(model: Any) -> set[int] | None:
    if model is None:
        return None
    if not isinstance(model, torch.nn.Module):
        raise InputError("plans takes the compiled model; for a compiled function, call plans() without arguments")
    return {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
