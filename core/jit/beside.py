"""Compiling some kernels in another process while this one compiles the others: numba compiles one at a time in each.

They meet in numba's cache on disk. If the other process fails, nothing is lost but time: what is not in the cache is compiled here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

PATIENCE = 60.0
"""Seconds after which the other process is taken to hang."""
_BEGIN = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from importlib import import_module
import_module(sys.argv[2]).work_for_parent(*sys.argv[3:])
"""


@contextmanager
def done_beside(work: Callable[[], None], kernels: Sequence[Any]) -> Iterator[None]:
    """Another process does the work, a function of a module, while the body runs; not if the kernels it compiles are in the cache."""
    child = None if all(map(is_cached, kernels)) else start(work)
    try:
        yield
        if child is not None:
            with suppress(subprocess.TimeoutExpired):
                child.wait(PATIENCE)
    finally:
        if child is not None:
            end(child)


def is_cached(kernel: Any) -> bool:
    """Is a kernel in the cache, compiled after its file was last changed? Only a guess: numba looks closer. True where nothing is kept."""
    folder = kernel.stats.cache_path
    if folder is None:
        return True
    source = Path(kernel.py_func.__code__.co_filename)
    pattern = f"{source.stem}.{kernel.py_func.__name__}-*.py{sys.version_info.major}{sys.version_info.minor}*.nbi"
    try:
        changed = source.stat().st_mtime
        return any(index.stat().st_mtime >= changed for index in Path(folder).glob(pattern))
    except OSError:
        return True


def start(work: Callable[[], None]) -> subprocess.Popen[bytes] | None:
    """A process that does the work with the modules we would find, says nothing, and ends when we do. None if there can be none."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    flags = ["-P", *(["-I"] if sys.flags.isolated else []), *(["-B"] if sys.dont_write_bytecode else [])]
    path = json.dumps([str(folder) for folder in sys.path])
    # In a session of its own: Ctrl-C is for us, and its end follows from ours.
    with suppress(OSError):
        return subprocess.Popen(
            [sys.executable, *flags, "-c", _BEGIN, path, __name__, work.__module__, work.__name__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=os.name == "posix",
        )
    return None


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.wait()
    if child.stdin is not None:
        child.stdin.close()


def work_for_parent(module: str, name: str) -> None:
    """In the other process: do the work, unless the parent ends before."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    getattr(import_module(module), name)()


def _end_with_parent() -> None:
    """The parent holds the other end of our input and writes nothing: it is closed when the parent ends, however that happens."""
    os.read(0, 1)
    os._exit(1)
