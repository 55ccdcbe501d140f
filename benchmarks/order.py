"""What choosing the order alone is worth: the peak with nothing recomputed, as a share of the given order's, beside the published figures.

    python benchmarks/order.py --graphs ../shared/graphs

Files of other formats (ONNX training graphs, for example) can be named as well. Exits 1 if a published figure is not reached.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from checkmate import load
from checkmate.core.events import Watch
from checkmate.core.model.costs import unit_costs
from checkmate.core.model.problem import build_problem
from checkmate.core.schedule.sequence import profile
from checkmate.core.search.order import find_order

PUBLISHED = {"random_layered_100": 0.794, "random_layered_500": 0.879}
"""Of the prototype in design/solver.md, after as many moves."""
SLACK = 0.0005
"""Published figures have three digits."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=Path, required=True, help="folder of the published graphs")
    parser.add_argument("--moves", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("others", type=Path, nargs="*", help="more graphs")
    options = parser.parse_args()
    print(f"{'graph':28}{'operations':>11}{'peak':>9}{'published':>11}{'seconds':>9}")
    good = True
    for path in (*sorted(options.graphs.glob("*.json")), *options.others):
        graph = load(path).graph
        problem = build_problem(graph, unit_costs(graph))
        begun = time.monotonic()
        order = find_order(problem, options.seed, options.moves, Watch())
        seconds = time.monotonic() - begun
        share = profile(problem, order).peak / profile(problem, range(problem.count)).peak
        published = PUBLISHED.get(path.stem)
        good &= published is None or share <= published + SLACK
        print(f"{path.stem:28}{problem.count:11}{share:9.4f}{'' if published is None else published:>11}{seconds:9.1f}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
