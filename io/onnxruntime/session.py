"""Open a model so that it runs in the order of its file and in the memory that was predicted.

By default, onnxruntime traverses the graph from its end, merges equal nodes, shares buffers between tensors of equal shape and keeps
copies of weights in another layout. All of this is useful elsewhere and wrong here: the memory of a compiled model depends on its order
and its recomputations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...core.errors import InputError, UnavailableError
from ..onnx.compile.exact_settings import EXACT_SETTINGS

_ENUMERATIONS = {"execution_order": "ExecutionOrder", "graph_optimization_level": "GraphOptimizationLevel"}
_INSTALL = "onnxruntime is not installed: pip install onnxruntime (or onnxruntime-gpu)"


def load_onnxruntime() -> Any:
    """Import the package, or raise an error that says how to install it."""
    try:
        import onnxruntime
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime"
        reason = _INSTALL if missing else f"onnxruntime cannot be loaded: {error}"
        raise UnavailableError(reason) from None
    return onnxruntime


def exact_options(onnxruntime: Any) -> Any:
    """`SessionOptions` with which order and memory are exactly as predicted."""
    options = onnxruntime.SessionOptions()
    for setting, value in EXACT_SETTINGS.items():
        if "." in setting:
            options.add_session_config_entry(setting, value)
        elif setting in _ENUMERATIONS:
            setattr(options, setting, getattr(getattr(onnxruntime, _ENUMERATIONS[setting]), value))
        else:
            setattr(options, setting, value == "True")
    return options


def session(
    path: str | os.PathLike[str] | bytes,
    *,
    providers: Sequence[Any] | None = None,
    threads: int | None = None,
    profile: str | os.PathLike[str] | None = None,
    config: Mapping[str, str] | None = None,
    session_options: Any = None,
) -> Any:
    """Open a compiled model, or any other, as an `onnxruntime.InferenceSession` whose order and memory are exactly as predicted.

    `providers` is CPU only by default. `threads` is the number of threads that one operator may use, by default all cores. `profile` is the
    prefix of the file for onnxruntime's profile; `end_profiling()` returns the full name. `config` sets further entries of onnxruntime's
    session configuration. `session_options` replaces all of these settings.
    """
    onnxruntime = load_onnxruntime()
    options = exact_options(onnxruntime) if session_options is None else session_options
    if threads is not None:
        options.intra_op_num_threads = threads
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = os.fspath(profile)
    for key, value in (config or {}).items():
        options.add_session_config_entry(key, value)
    chosen = ["CPUExecutionProvider"] if providers is None else list(providers)
    _check_providers(onnxruntime, chosen)
    model = path if isinstance(path, bytes) else _existing(path)
    return onnxruntime.InferenceSession(model, options, providers=chosen)


def _existing(path: str | os.PathLike[str]) -> str:
    if not Path(path).is_file():
        raise InputError(f"{os.fspath(path)}: no such file")
    return os.fspath(path)


def _check_providers(onnxruntime: Any, chosen: Sequence[Any]) -> None:
    """Raise an error if a provider is not available: onnxruntime would silently fall back to the CPU."""
    available = onnxruntime.get_available_providers()
    for entry in chosen:
        name = entry[0] if isinstance(entry, tuple) else entry
        if name not in available:
            raise UnavailableError(f"this onnxruntime has no {name}; it has {', '.join(available)}; install onnxruntime-gpu for CUDA")
