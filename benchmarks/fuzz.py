"""Damaged files for every reader: nothing but results and one-line complaints may come out.

    python benchmarks/fuzz.py                               10,000 of each
    python benchmarks/fuzz.py --reader onnx --count 500     some of one
    python benchmarks/fuzz.py --reader onnx --case 4711     one again; its file is written to the current folder

The tests run a sample of these. Exits 1 if there is any failure, each told with what it takes to repeat it.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support" / "hostile"))

from fuzzing import damaged_file, fuzz
from hostile_files import readers


def main() -> int:
    known = readers()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="cases of each reader")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reader", action="append", choices=list(known), help="repeatable; all by default")
    parser.add_argument("--case", type=int, help="only this one")
    chosen = parser.parse_args()
    first, count = (0, chosen.count) if chosen.case is None else (chosen.case, 1)
    print(f"seed {chosen.seed}\n{'reader':14}{'cases':>8}{'read':>8}{'refused':>9}{'failed':>8}{'slowest':>10}{'seconds':>9}")
    failed = 0
    for name in chosen.reader or known:
        if chosen.case is not None:
            Path(known[name].file).write_bytes(damaged_file(known[name], chosen.case, chosen.seed))
        begun = time.monotonic()
        tally = fuzz(name, count, chosen.seed, first)
        seconds = time.monotonic() - begun
        print(f"{name:14}{count:8}{tally.read:8}{tally.refused:9}{len(tally.failures):8}{tally.slowest:8.2f} s{seconds:9.1f}", flush=True)
        for failure in tally.failures[:10]:
            print(f"\n--reader {name} --case {failure.case} --seed {chosen.seed}\n{failure.what}\n", flush=True)
        failed += len(tally.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
