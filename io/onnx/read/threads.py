"""How many threads a session of onnxruntime uses for one operator: some operators need workspace for each."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from onnx import ModelProto

from .metadata import THREADS_KEY, noted_threads


def threads_for(model: ModelProto) -> int:
    """The number that a compiled model was made for; else that of this machine."""
    return noted_threads({entry.key: entry.value for entry in model.metadata_props if entry.key == THREADS_KEY}) or session_threads()


@cache
def session_threads() -> int:
    """The physical cores that this process may use, as onnxruntime counts them by default."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    return len({_siblings(core) for core in cores})


def _siblings(core: int) -> str:
    """The logical cores on the same physical one."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(core)
