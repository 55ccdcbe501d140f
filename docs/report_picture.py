"""Makes docs/report.png, the picture of a report in the README, in a real browser (chromium): `python docs/report_picture.py`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import Page, find_browser  # noqa: E402

SOLVE = ("solve", "unet.onnx", "--budget", "65%", "--time-limit", "20s", "--no-onnx", "--report", "page.html")
WIDTH, HEIGHT = 1120, 988


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "unet.onnx").write_bytes((ROOT / "sample_graphs" / "unet.onnx").read_bytes())
        subprocess.run([sys.executable, "-m", "checkmate", *SOLVE], cwd=folder, check=True, capture_output=True)
        with Page(find_browser(), WIDTH, HEIGHT) as page:
            page.open(Path(folder) / "page.html")
            page.hover("#memory-picture", 0.42, 0.5)
            page.run("scrollTo(0, 0)")
            (ROOT / "docs" / "report.png").write_bytes(page.picture())


if __name__ == "__main__":
    main()
