"""Makes docs/solve.svg, the picture in the README, from what the command really prints: `python docs/picture.py`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
COMMAND = ("solve", "forward.onnx", "--loss", "cross-entropy", "--batch-size", "32", "--budget", "70%", "--time-limit", "20s")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "forward.onnx").write_bytes((ROOT / "sample_graphs" / "forward.onnx").read_bytes())
        environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
        ran = subprocess.run(
            [sys.executable, "-m", "checkmate", *COMMAND], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
    console = Console(record=True, width=100, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text(f"$ checkmate {' '.join(COMMAND)}", style="bold"))
    console.print(Text.from_ansi(ran.stdout.rstrip("\n")))
    console.save_svg(str(Path(__file__).parent / "solve.svg"), title="checkmate")


if __name__ == "__main__":
    main()
