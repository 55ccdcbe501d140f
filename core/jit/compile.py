"""How kernels are compiled: cached on disk, without the interpreter's lock, and quickly.

Level 1 of LLVM's optimizer compiles in half the time of the default and gives kernels that run as fast. It has to be set before numba is
imported. Kernels themselves are written to be compiled quickly: few arguments, no slices, no numpy functions, and no constants as
arguments, because numba compiles a function once more for every constant it is given.
"""

from __future__ import annotations

import os
from typing import Any

os.environ.setdefault("NUMBA_OPT", "1")

from numba import njit

_compiled: Any = njit

_options = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}
"""Without `_nrt`, numba's counting of references: the caller holds the arrays, and counting is a third of the time of a search."""

inner = _compiled(no_cpython_wrapper=True, **_options)
"""Called from other kernels only: leaving out the wrapper saves much of the time to compile."""


def outer(kernel: Any) -> Any:
    """Called from Python too. Only that is cached: it has what it calls compiled in."""
    try:
        return _compiled(cache=True, **_options)(kernel)
    except RuntimeError:
        # Neither beside the source nor at home can anything be written: compiled afresh by every process, but compiled.
        return _compiled(**_options)(kernel)
