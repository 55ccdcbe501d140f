"""Every tuning constant of the engine, in one table: what it is, in which unit, and the measurement that set it.

Figures are of 2 cores; "light" are the nine light models of the onnx wheel at batch 32, "papers" the published graphs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """One frozen table, so that a benchmark can change one entry and see what it is worth."""

    fine_gap: float = 1e-4
    """Relative gap to which small programs are solved: what the papers call optimal."""
    quick_columns: int = 4000
    """Variables up to which a program is solved to the fine gap: those take at most a few seconds on all papers and light models."""
    bound_safety: float = 1e-7
    """Taken off a solver's bound, relative: it rests on tolerances of 1e-9 and sums of thousands of terms."""
    first_nodes: int = 2000
    """Nodes of branch and bound for one program."""
    program_share: float = 0.2
    least_program_seconds: float = 2.0
    """A program is left after this part of the time limit, or this many seconds if that is more: inception_v2 at 50 % with two breakpoints
    has its best solution after 12 s and proves nothing more in 45 s."""
    more_nodes: int = 2
    """Factor on the nodes after a program that was left unsolved."""
    far_apart: int = 8
    """Breakpoints are far enough apart if an eighth of the operations is between them."""
    scan_each: int = 4
    """Candidates for the first breakpoint by each rating: 12 linear programs, 0.1 to 1.1 s on light models; resnet50 at 50 % is proven with
    the one they choose, and bounded at 0.8 instead of 4.5 % with the likeliest by rating alone."""
    scan_apart: int = 30
    """Candidates are at least a thirtieth of the operations apart."""
    scan_operations: int = 10_000
    """Operations above which linear programs take seconds, and the likeliest candidate is taken unseen."""
    lanes: int = 2
    """Chains of breakpoints refined side by side, from the best first breakpoints; every second one with cuts."""
    baselines_share: float = 0.1
    """Part of the time that the baselines may take; all of them take less on any graph below 20,000 operations."""
    programs_share: float = 0.5
    """Part of the time after which the programs make way for the searches under chosen orders."""
    fine_rounds: int = 3
    fine_operations: int = 2000
    """On graphs up to this size, so many more programs are solved after the gap asked for is met, if it is not met finely: seconds."""
    order_moves: int = 200_000
    order_moves_per_operation: int = 500
    """Moves to find a better order of a program's solution; more found nothing lower on light models (resnet50 at 50 and 70 %)."""
    repair_moves: int = 200_000
    repair_moves_per_operation: int = 1000
    repair_runs: int = 2
    """Moves of each repair, and how many from each start."""
    repair_hot: float = 0.1
    repair_penalty: float = 3e-3
    """Temperature, in costs of an average operation, and infeasibility penalty at first, in ideal costs. shufflenet 70 %, 50 % and
    inception_v1 50 %: 1.31, 3.31, 3.43 % at (0.1, 0.003); 1.58, 3.48, 4.07 % at (1, 0.003), 1.34, 3.31, 3.89 % at (0.1, 0.3)."""


PARAMS = Params()
