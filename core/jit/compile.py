"""How kernels are compiled: cached on disk, without the interpreter's lock, and quickly.

Level 1 of LLVM's optimizer compiles in half the time of the default and gives kernels that run as fast. It has to be set before numba is
imported. Kernels themselves are written to be compiled quickly: few arguments, no slices, no numpy functions, and no constants as
arguments, because numba compiles a function once more for every constant it is given.
"""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from typing import Any

os.environ.setdefault("NUMBA_OPT", "1")
_ADDRESS_SPACE = 384 * 2**20
"""Bytes that numba, LLVM and scipy take when they are imported (320 MiB with numba 0.68)."""


def _require_address_space() -> None:
    """OpenBLAS, which scipy loads, waits forever if it cannot reserve its memory. Nothing is used here, only reserved and given back."""
    try:
        mmap.mmap(-1, _ADDRESS_SPACE).close()
    except OSError as error:
        raise MemoryError(f"{_ADDRESS_SPACE} bytes cannot be reserved for compiled code") from error


_require_address_space()

from numba import njit  # noqa: E402
from numba.core.caching import FunctionCache  # noqa: E402

_compiled: Any = njit

_options = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}
"""Without `_nrt`, numba's counting of references: the caller holds the arrays, and counting is a third of the time of a search."""

inner = _compiled(no_cpython_wrapper=True, **_options)
"""Called from other kernels only: leaving out the wrapper saves much of the time to compile."""


_Kept: Any = FunctionCache


class _Cache(_Kept):  # type: ignore[misc]
    """numba's cache on disk, which fails on files that are damaged: here these are compiled again, and what cannot be kept is not."""

    def load_overload(self, signature: Any, target: Any) -> Any:
        try:
            return super().load_overload(signature, target)
        except Exception:
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        with suppress(Exception):
            super().save_overload(signature, data)


def outer(kernel: Any) -> Any:
    """Called from Python too. Only that is cached: it has what it calls compiled in."""
    compiled = _compiled(**_options)(kernel)
    # Where neither beside the source nor at home anything can be written, every process compiles it afresh.
    with suppress(RuntimeError):
        compiled._cache = _Cache(kernel)
    return compiled
