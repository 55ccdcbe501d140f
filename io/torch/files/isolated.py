"""Run a PyTorch program in a child process, so that a crash or a lack of memory there is a result and not the end."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ....core.errors import InputError, LimitError
from ...child_process import run_child


def run_isolated(task: str, request: Mapping[str, Any], on_progress: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The result of a task of `isolated_job`. `on_progress` gets the lines that it prints."""
    with tempfile.TemporaryDirectory(prefix="checkmate-") as name:
        ended = run_child(f"{__package__}.isolated_job", {"task": task, **request}, Path(name), on_progress)
    if ended.result is not None:
        if "error" in ended.result:
            raise InputError(str(ended.result["error"]))
        return ended.result
    model, code, last = request.get("model", ""), ended.code, ended.last_line
    if code == -signal.SIGKILL or "DefaultCPUAllocator" in last or "MemoryError" in last:
        raise LimitError(f"{model}: too little memory to run the program: {last}")
    how = f"with signal {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
    raise InputError(f"{model}: torch cannot run the program: the process ended {how}: {last}")
