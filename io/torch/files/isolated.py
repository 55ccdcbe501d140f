"""Run a PyTorch program in a child process, so that a crash or a lack of memory there is a result and not the end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ....core.errors import InputError, LimitError

REQUEST, RESULT = "request.json", "result.json"


def run_isolated(task: str, request: Mapping[str, Any], on_progress: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
    """The result of a task of `isolated_job`. `on_progress` gets the lines that it prints."""
    with tempfile.TemporaryDirectory(prefix="checkmate-") as name:
        folder = Path(name)
        (folder / REQUEST).write_text(json.dumps({"task": task, **request}))
        with (folder / "stderr").open("wb") as complaints:
            command = [sys.executable, "-P", "-m", f"{__package__}.isolated_job", name]
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints)
            assert child.stdout is not None
            try:
                for line in child.stdout:
                    on_progress(line.decode(errors="replace").strip())
                code = child.wait()
            except BaseException:
                child.kill()
                child.wait()
                raise
            finally:
                child.stdout.close()
        if code == 0 and (folder / RESULT).exists():
            result: dict[str, Any] = json.loads((folder / RESULT).read_text())
            if "error" in result:
                raise InputError(str(result["error"]))
            return result
        complaint = (folder / "stderr").read_text(errors="replace").strip().splitlines()
        last = complaint[-1].strip()[:300] if complaint else "no output"
        if code == -signal.SIGKILL or "DefaultCPUAllocator" in last or "MemoryError" in last:
            raise LimitError(f"{request.get('model', '')}: too little memory to run the program: {last}")
        ended = f"with signal {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        raise InputError(f"{request.get('model', '')}: torch cannot run the program: the process ended {ended}: {last}")
