"""Any-order programs against exhaustive search over orders, recomputations and computing in place: none may be above the optimum.

    python benchmarks/bounds.py [--programs 10000] [--first 0]

Random graphs, training chains and training graphs, as the tests draw them (`tests/core/milp/test_any_order.py` has a sample). For each
graph some breakpoints, and programs with integers and without, with cuts, tails, both and neither, presolved. Exits 1 if a bound is above
the optimum.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from any_order_programs import drawn, optimum_of, random_breakpoints, random_tails  # noqa: E402
from oracles import any_order_optimum  # noqa: E402

from checkmate.core.events import Watch  # noqa: E402
from checkmate.core.milp.any_order import AnyOrderProgram  # noqa: E402
from checkmate.core.model.bounding import bounding_problem  # noqa: E402
from checkmate.core.model.precedence import PartialOrder  # noqa: E402
from checkmate.core.solvers.linear_program import solve_linear  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first graph")
    options = parser.parse_args()
    solved = above = strict = met = graphs = 0
    seed = options.first
    while solved < options.programs:
        seed += 1
        problem = drawn(seed)
        if problem.count < 3 or (best := any_order_optimum(problem)) == math.inf:
            continue
        graphs += 1
        bounding = bounding_problem(problem)
        precedence = PartialOrder(bounding)
        chain = random_breakpoints(bounding, precedence, seed)
        tails = random_tails(bounding, precedence, chain, seed)
        for cuts, ends in ((False, []), (True, []), (False, tails), (True, tails)):
            program = AnyOrderProgram.of(bounding, precedence, chain, cuts=cuts, tails=ends)
            for bound in (solve_linear(program.form.relaxed(), Watch(60)).bound * program.unit, optimum_of(program)):
                solved += 1
                strict += bound > problem.ideal_cost * (1 + 1e-6)
                met += best > problem.ideal_cost * (1 + 1e-6) and bound >= best * (1 - 1e-6)
                if bound > best * (1 + 1e-6) + 1e-6:
                    above += 1
                    print(
                        f"above the optimum: seed {seed}, breakpoints {chain}, cuts {cuts}, {len(ends)} tails: {bound} > {best}", flush=True
                    )
    print(f"| programs | graphs | above the optimum | above the ideal cost | equal to an optimum above the ideal |\n|{'---|' * 5}")
    print(f"| {solved} | {graphs} | {above} | {strict} | {met} |")
    return 1 if above else 0


if __name__ == "__main__":
    sys.exit(main())
