"""Open a model so that it runs in the order of its file and in the memory that was predicted.

onnxruntime's defaults walk the graph from its end, merge equal nodes, tie buffers of equal shape together and keep copies of weights in
another layout. All of that is useful elsewhere and wrong here: a rematerialized graph holds its promise by its order and its repeats.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ...core.errors import InputError, UnavailableError

EXACT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "execution_order": "PRIORITY_BASED",
        "graph_optimization_level": "ORT_DISABLE_ALL",
        "enable_mem_pattern": "False",
        "enable_mem_reuse": "False",
        "enable_cpu_mem_arena": "True",
        "session.disable_prepacking": "1",
    }
)
"""Under these, order and memory are exact; compiled models carry them in their metadata, as `checkmate.session.<setting>`.

Packed weights are copies that each recomputed node would hold anew, so packing is off."""

_ENUMERATIONS = {"execution_order": "ExecutionOrder", "graph_optimization_level": "GraphOptimizationLevel"}
_INSTALL = "onnxruntime is not installed: pip install onnxruntime (or onnxruntime-gpu)"


def load_onnxruntime() -> Any:
    """The package, or one line that says how to get it."""
    try:
        import onnxruntime
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime"
        reason = _INSTALL if missing else f"onnxruntime cannot be loaded: {error}"
        raise UnavailableError(reason) from None
    return onnxruntime


def exact_options(onnxruntime: Any) -> Any:
    """`SessionOptions` under which order and memory are exact."""
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
    """Open a compiled model, or any other, as an `onnxruntime.InferenceSession` whose order and memory are exact.

    `providers` is CPU alone by default. `threads` is the number of threads one operator may use, all cores by default. `profile` is where
    onnxruntime's profile goes: the start of a file name, `end_profiling()` says the whole. `config` sets further entries of onnxruntime's
    session configuration. `session_options` takes the place of all settings, if you know better.
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
        raise InputError(f"{os.fspath(path)}: there is no such file")
    return os.fspath(path)


def _check_providers(onnxruntime: Any, chosen: Sequence[Any]) -> None:
    """onnxruntime falls back to the CPU in silence; whoever names a provider wants that one."""
    available = onnxruntime.get_available_providers()
    for entry in chosen:
        name = entry[0] if isinstance(entry, tuple) else entry
        if name not in available:
            raise UnavailableError(f"this onnxruntime has no {name}; it has {', '.join(available)}; install onnxruntime-gpu for CUDA")
