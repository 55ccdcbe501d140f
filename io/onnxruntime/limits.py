"""Measure and limit the memory of this process. For child processes only, because the changes are permanent."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS = Path("/proc/self/status")
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -2, -3, -4, -8
"""Options of glibc's mallopt."""
OWN_PAGES_FROM = 64 * 1024
"""Allocations from this size on get their own pages, which are returned to the system when they are freed."""


def can_limit_address_space() -> bool:
    return sys.platform == "linux"


def give_back_freed_memory() -> None:
    """Return freed memory to the system at once; by default glibc keeps much of it, which would distort the measurements."""
    if sys.platform != "linux":
        return
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return
    mallopt(_MMAP_THRESHOLD, OWN_PAGES_FROM)
    mallopt(_MMAP_MAX, 2**30)
    mallopt(_TRIM_THRESHOLD, 0)
    mallopt(_TOP_PAD, 0)
    mallopt(_ARENA_MAX, 1)


@contextmanager
def capped_address_space(more: int) -> Iterator[None]:
    """Let the process grow by at most this many bytes."""
    import resource

    taken = _status("VmSize")
    if taken is None:
        raise RuntimeError("the size of the process cannot be read here")
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def resident_bytes() -> int | None:
    return _status("VmRSS")


def resident_peak() -> int | None:
    """The most since the last reset."""
    return _status("VmHWM")


def reset_resident_peak() -> None:
    if sys.platform == "linux":
        Path("/proc/self/clear_refs").write_text("5")


def _status(key: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:")), None)
