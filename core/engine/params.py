"""Every tuning constant of the engine, in one table: what it is, in which unit, and the measurement that set it.

Figures are of 2 cores; "light" are the nine light models of the onnx wheel at batch 32, "papers" the published graphs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Params:
    """One frozen table, so that a benchmark can change one entry and see what it is worth."""

    fine_gap: float = 1e-4
    """Relative gap at which the work ends at once: what the papers call optimal."""
    least_work: float = 3.0
    """Seconds of work. Once the gap is as asked for, the work goes on for as long again, but at least until here: most published graphs are
    proven to `fine_gap` within that."""
    move_work: float = 5e-6
    look_work: float = 1e-5
    """Seconds of work of a move of a search, and of a moment in which HiGHS looks whether to stop, for each variable: light models."""
    searches: int = 2
    """Searches of a round."""
    idle_rounds: int = 20
    """Rounds without a better schedule after which the work ends if there is nothing left to prove: searches double their moves four times
    within that."""
    bound_safety: float = 1e-7
    """Taken off a solver's bound, relative: it rests on tolerances of 1e-9 and sums of thousands of terms."""
    program_gap: float = 5e-5
    """Relative gap to which programs are solved."""
    integer_columns: int = 30_000
    """Variables above which only the linear relaxation of a program is solved, and rounded: a transformer of 50,000 operations at half its
    peak takes 1 s so, 48 s with whole numbers, and the bounds agree in 12 digits."""
    slice_looks: int = 24
    """The work of a slice of a program: how often HiGHS looks whether to stop, about a second."""
    program_slices: int = 6
    """Slices after which a program is left whose solutions do not fit; twice as many after each that was left."""
    most_slices: int = 60
    """Slices after which a program is left whose solution fits, or that has none."""
    small_part: float = 0.1
    """A program is left if its own gap is this part of the pool's gap: a better solution of it would change little."""
    far_apart: int = 8
    """Breakpoints are far enough apart if an eighth of the operations is between them."""
    scan_each: int = 4
    """Candidates for the first breakpoint by each rating: 12 linear programs, 0.1 to 1.1 s on light models; resnet50 at 50 % is proven with
    the one they choose, and bounded at 0.8 instead of 4.5 % with the likeliest by rating alone."""
    scan_apart: int = 30
    """Candidates are at least a thirtieth of the operations apart."""
    scan_operations: int = 10_000
    """Operations above which linear programs take seconds, and the likeliest candidate is taken unseen."""
    next_each: int = 8
    next_apart: int = 60
    next_operations: int = 5000
    """Candidates for a further breakpoint, this part of the operations apart, compared by linear programs on graphs up to this size.
    inception_v1 at 50 %: bound 3.34 % with two breakpoints chosen so, with four by rating alone."""
    long_wait: int = 8
    long_wait_part: int = 100
    """A recomputed value waits long if it is last read so many computations later, or this part of all of them."""
    tail_labels: int = 100_000
    tail_rounds: int = 6
    """Labels of a tail that are looked at, each time, and how often it is asked which values are worth tracking. inception_v1 at 37.1 %, in
    the incumbent's order: bound 30.9 % after 34 s; 30.8 % with twice as many of both."""
    tails_from_round: int = 6
    tails_gap: float = 0.02
    """The round in which programs with tails begin, and the gap above which they do. gpt6_joint at 70 MB, whose gap is 0.8 % in that round:
    proven in 17 s without tails, not in 60 s with them."""
    order_operations: int = 20_000
    """Operations above which no better order is looked for: it takes 20 s at 50,000, where replays are within 1 % of the budget anyway."""
    order_moves: int = 200_000
    order_moves_per_operation: int = 200
    """Moves to find a better order of a program's solution; more found nothing lower on light models (inception_v2, densenet121 at 50
    %)."""
    repair_most: float = 0.1
    """Candidates that take more than this part too much are not repaired: annealing does not get them down. resnet50 at 35 %: every second
    search began with such a one."""
    repair_hot: float = 0.1
    repair_penalty: float = 3e-3
    """Temperature, in costs of an average operation, and infeasibility penalty at first, in ideal costs. shufflenet 70 %, 50 % and
    inception_v1 50 %: 1.31, 3.31, 3.43 % at (0.1, 0.003); 1.58, 3.48, 4.07 % at (1, 0.003), 1.34, 3.31, 3.89 % at (0.1, 0.3)."""
    margin_most: float = 0.05
    margin_factor: float = 1.2
    margin_gap: float = 5e-4
    margin_programs: int = 4
    """Programs for less than the budget are tried if a replay takes at most this part too much; they get so many times that less, are
    solved to this gap, and are given up after so many. A chain of 10,000 operations at 50 %: 8.62 % where annealing comes to 9.33 %."""
    annealing_moves: int = 300_000
    annealing_moves_per_operation: int = 300
    improve_doublings: int = 4
    """Moves of an annealing run; from the incumbent doubled after every second failure, so many times."""
    stage_moves: int = 40_000
    stage_moves_per_operation: int = 200
    stage_runs: int = 8
    """Moves over stages; doubled after so many runs, as often as those of `improve`."""
    stage_from_round: int = 2
    stage_turns: int = 3
    stage_penalties: int = 4
    """The round in which the search over stages in the graph's own order begins; how many runs begin with nothing recomputed before as many
    begin with the best; and how many infeasibility penalties are tried in turn."""
    stage_move_work: float = 2e-8
    """Seconds of work of a move over stages, for each operation: resnet50."""
    descent_from_round: int = 2
    descent_halvings: int = 6
    descent_moves: int = 10_000
    descent_moves_per_operation: int = 50
    """The round from which on, without a schedule, a lower peak is searched for; how often the way to the budget is halved before the moves
    are doubled."""
    smallest_halvings: int = 2
    """How often `min-budget` halves the way to the proven limit at first, which is most often out of reach. random_layered_500 in 30 s:
    66.4 % of its peak; 69.7 % with the whole way first."""


PARAMS = Params()
