"""A task in a child process, so that a crash or a lack of memory there is a result and not the end. Tasks and results are JSON files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REQUEST, RESULT = "request.json", "result.json"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child process ended."""

    code: int
    """What it returned, or less than nothing: the signal that ended it."""
    complaints: str
    """What it wrote to its standard error."""
    result: dict[str, Any] | None
    """What it gave; None if it ended before."""

    @property
    def last_line(self) -> str:
        """The last thing it said, which is mostly why it ended."""
        lines = [line.strip() for line in self.complaints.splitlines() if line.strip()]
        return lines[-1][:300] if lines else "no output"


def run_child(
    module: str, request: Mapping[str, Any], folder: Path, on_line: Callable[[str], None], variables: Mapping[str, str] | None = None
) -> Ended:
    """Run a module that reads its request in `folder` and writes its result there. `on_line` gets the lines that it prints."""
    (folder / REQUEST).write_text(json.dumps(request))
    with (folder / "stderr").open("wb") as complaints:
        command = [sys.executable, "-P", "-m", module, str(folder)]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=complaints, env=variables)
        assert child.stdout is not None
        try:
            for line in child.stdout:
                on_line(line.decode(errors="replace").strip())
            code = child.wait()
        except BaseException:
            child.kill()
            child.wait()
            raise
        finally:
            child.stdout.close()
    done = code == 0 and (folder / RESULT).exists()
    result = json.loads((folder / RESULT).read_text()) if done else None
    return Ended(code, (folder / "stderr").read_text(errors="replace"), result)
