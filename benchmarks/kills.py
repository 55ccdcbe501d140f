"""Kill `solve` and `batch` at random moments: every file is the old one or the new one, and the next run finishes.

    python benchmarks/kills.py --count 500       of each command

The tests run a few of these. Exits 1 if a file is anything else.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from killing import Killer


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=500, help="kills of each command")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=("solve", "batch"), help="repeatable; both by default")
    chosen = parser.parse_args()
    columns = ("kills", "too late", "old files", "new files", "left over", "corrupt")
    print(f"seed {chosen.seed}\n{'command':10}" + "".join(f"{column:>11}" for column in columns) + f"{'seconds':>9}")
    corrupt = 0
    for command in chosen.command or ("solve", "batch"):
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="checkmate-kills-") as folder:
            killer = Killer(Path(folder), command, chosen.seed)
            found = killer.kill(chosen.count)
            killer.finish()
        corrupt += len(found.corrupt)
        figures = (found.kills, found.finished, found.with_old, found.with_new, found.leftovers, len(found.corrupt))
        seconds = time.monotonic() - begun
        print(f"{command:10}" + "".join(f"{figure:11}" for figure in figures) + f"{seconds:9.1f}", flush=True)
        for line in found.corrupt[:10]:
            print(line)
    return 1 if corrupt else 0


if __name__ == "__main__":
    sys.exit(main())
