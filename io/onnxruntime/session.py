"""Open a model so that it runs in the order of its file and in the memory that was predicted.

By default, onnxruntime traverses the graph from its end, merges equal nodes, shares buffers between tensors of equal shape and keeps
copies of weights in another layout. All of this is useful elsewhere and wrong here: the memory of a compiled model depends on its order
and its recomputations.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from ...core.errors import InputError, UnavailableError
from ..onnx.compile.exact_settings import EXACT_SETTINGS
from ..onnx.read.metadata import ARENA_KEY, WASTE_KEY, noted_number, noted_threads, read_metadata
from .arena import LARGEST_BLOCK, UNIT
from .providers import CPU

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
    arena_bytes: int | None = None,
    profile: str | os.PathLike[str] | None = None,
    config: Mapping[str, str] | None = None,
    session_options: Any = None,
) -> Any:
    """Open a compiled model, or any other, as an `onnxruntime.InferenceSession` whose order and memory are exactly as predicted.

    `providers` is CPU only by default. `threads` is the number of threads that one operator may use, by default the one that the model was
    compiled for, or all cores. `arena_bytes` is the size of the block that all tensors lie in, by default the one that was predicted for
    the model; with 0, onnxruntime takes memory in steps. `profile` is the prefix of the file for onnxruntime's profile; `end_profiling()`
    returns the full name. `config` sets further entries of onnxruntime's session configuration. `session_options` replaces all of these
    settings.
    """
    onnxruntime = load_onnxruntime()
    model = path if isinstance(path, bytes) else _existing(path)
    notes = read_metadata(model) if session_options is None else {}
    options = exact_options(onnxruntime) if session_options is None else session_options
    if threads is None:
        threads = noted_threads(notes)
    if threads is not None:
        options.intra_op_num_threads = threads
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = os.fspath(profile)
    for key, value in (config or {}).items():
        options.add_session_config_entry(key, value)
    chosen = [CPU] if providers is None else list(providers)
    _check_providers(onnxruntime, chosen)
    if any(_name(entry) != CPU for entry in chosen):
        notes, arena_bytes = {}, 0
    with predicted_block(onnxruntime, options, notes) if arena_bytes is None else one_block(onnxruntime, options, arena_bytes):
        return onnxruntime.InferenceSession(model, options, providers=chosen)


def predicted_block(onnxruntime: Any, options: Any, notes: Mapping[str, str]) -> AbstractContextManager[None]:
    """Sessions that are opened here keep their tensors in the block that was predicted for a model with this metadata, if there is one."""
    return one_block(onnxruntime, options, noted_number(notes, ARENA_KEY), noted_number(notes, WASTE_KEY))


@contextmanager
def one_block(onnxruntime: Any, options: Any, size: int | None, most_waste: int | None = None, limit: int = 0) -> Iterator[None]:
    """Sessions that are opened here with these options keep their tensors in one block of this size.

    onnxruntime takes settings of an arena only for an allocator that all sessions of the process can share. It is replaced afterwards, so
    that the next session gets its own, and the block is returned when the session is closed. `limit` is the most that the arena may take.
    """
    if not size:
        yield
        return
    settings = {
        "max_mem": limit,
        "arena_extend_strategy": 0,
        "initial_chunk_size_bytes": min(-(-size // UNIT) * UNIT, LARGEST_BLOCK),
        "max_dead_bytes_per_chunk": min(most_waste or 1, LARGEST_BLOCK),
    }
    try:
        _share_arena(onnxruntime, settings)
    except RuntimeError:
        # Older versions cannot replace an allocator: open the session without the block.
        yield
        return
    options.add_session_config_entry("session.use_env_allocators", "1")
    try:
        yield
    finally:
        with suppress(RuntimeError):
            _share_arena(onnxruntime, {})


def _share_arena(onnxruntime: Any, settings: Mapping[str, int]) -> None:
    place = onnxruntime.OrtMemoryInfo("Cpu", onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, onnxruntime.OrtMemType.DEFAULT)
    onnxruntime.create_and_register_allocator(place, onnxruntime.OrtArenaCfg(dict(settings)))


def _existing(path: str | os.PathLike[str]) -> str:
    if not Path(path).is_file():
        raise InputError(f"{os.fspath(path)}: no such file")
    return os.fspath(path)


def _check_providers(onnxruntime: Any, chosen: Sequence[Any]) -> None:
    """Raise an error if a provider is not available: onnxruntime would silently fall back to the CPU."""
    available = onnxruntime.get_available_providers()
    for name in map(_name, chosen):
        if name not in available:
            raise UnavailableError(f"this onnxruntime has no {name}; it has {', '.join(available)}; install onnxruntime-gpu for CUDA")


def _name(provider: Any) -> str:
    return str(provider[0] if isinstance(provider, tuple) else provider)
