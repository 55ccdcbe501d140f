"""The child process that runs programs. Started by `isolated.run_isolated`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ....core.errors import CheckmateError
from ...child_process import REQUEST, RESULT


def main(folder: Path) -> None:
    request = json.loads((folder / REQUEST).read_text())
    task = request.pop("task")
    try:
        result = _TASKS[task](**request)
    except CheckmateError as error:
        result = {"error": str(error)}
    (folder / RESULT).write_text(json.dumps(result))


def _profile(**request: Any) -> dict[str, Any]:
    from .program_runs import profile_program

    return profile_program(on_progress=_tell, **request)


def _verify(**request: Any) -> dict[str, Any]:
    from .program_runs import run_both

    return run_both(on_task=_say, **request)


_TASKS = {"profile": _profile, "verify": _verify}


def _tell(done: int, total: int) -> None:
    _say(f"{done} {total}")


def _say(line: str) -> None:
    """For the waiting process."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
