"""Every tuning constant of the solver, in one table: what it is, in which unit, and the measurement that set it.

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
    searches: int = 6
    """Searches of a round: about as much work as the programs of a round are on graphs of 1,000 operations. With 2, resnet50 at 22.4 %
    finds nothing in 60 s."""
    idle_rounds: int = 20
    """Rounds without a better schedule after which the work ends if there is nothing left to prove: searches double their moves four times
    within that."""
    bound_safety: float = 1e-7
    """Taken off a solver's bound, relative: it rests on tolerances of 1e-9 and sums of thousands of terms."""
    integer_columns: int = 30_000
    """Variables above which only the linear relaxation of a program is solved, by the interior point method, and rounded: a transformer of
    50,000 operations at half its peak takes 1 s so, 48 s with whole numbers, and the bounds agree in 12 digits. The interior point method
    and the simplex method take 0.9 and 8.8 s there, 0.2 and 0.1 s on 20,000 variables."""
    slice_work: float = 1.0
    slice_looks: int = 24
    """The work of a slice of a program, in seconds of work and in looks, whichever is less. Slices of 24 looks take up to 7 s on resnet50
    at 22.4 %, where programs have 8,000 variables."""
    program_looks: int = 144
    """Looks after which a program is left whose solutions do not fit; twice as many after each that was left."""
    small_part: float = 0.1
    """A program is left if its own gap is this part of the pool's gap: a better solution of it would change little."""
    far_apart: int = 8
    """Breakpoints are far enough apart if an eighth of the operations is between them."""
    breakpoints_each: int = 4
    breakpoints_apart: int = 30
    breakpoints_operations: int = 10_000
    """Candidates for a breakpoint by each rating, at least a thirtieth of the operations apart, and the operations above which comparing
    them by linear programs takes too long. 12 for the first one take 0.1 to 1.1 s on light models; resnet50 at 50 % is proven with the one
    they choose, and bounded at 0.8 instead of 4.5 % with the likeliest by rating alone; inception_v1 at 50 %: bound 3.34 % with two
    breakpoints chosen so, with four by rating alone."""
    presolve_small: float = 2e-3
    presolve_nearly: float = 2.0
    """What the smallest values take together that are taken to need no memory, as a part of what the budget leaves beside the least that
    any schedule needs; and by which factor a value may be taken to be smaller, if that lets operations be one."""
    slice_nodes: int = 2000
    """Nodes of branch and bound after which a solver that cannot pause stops."""
    long_wait: int = 100
    """A recomputed value waits long if it is last read this part of all computations later."""
    tail_labels: int = 100_000
    tail_rounds: int = 6
    """Labels of a tail that are looked at, each time, and how often it is asked which values are worth tracking. inception_v1 at 37.1 %, in
    the incumbent's order: bound 30.9 % after 34 s; 30.8 % with twice as many of both."""
    tail_large: tuple[float, ...] = (0.2, 0.1)
    tail_least: float = 0.01
    tail_asked: int = 4
    """Parts of the memory from which on values are tracked at first; the least that is tracked if labels use it; how many labels are asked
    what they use. inception_v1 at 37.1 %: the linear program proves 11.5 % for any order, 10.2 % with 0.05 as well: labels are cut short.
    The last two are not measured."""
    tails_from_round: int = 6
    tails_gap: float = 0.02
    """The round in which programs with tails begin, and the gap above which they do. gpt6_joint at 70 MB, whose gap is 0.8 % in that round:
    proven in 17 s without tails, not in 60 s with them."""
    order_operations: int = 20_000
    """Operations above which no better order is looked for: it takes 20 s at 50,000, where replays are within 1 % of the budget anyway."""
    order_moves: int = 200
    """Moves for each operation, of 1,000 at most, to find a better order of a program's solution; more found nothing lower on light models
    (inception_v2, densenet121 at 50 %)."""
    orders: tuple[tuple[float, float, float], ...] = ((1e-2, 1e-4, 0.005), (1e-1, 1e-3, 0.02))
    """Annealing runs over orders: temperature at first and in the end, and how far below the lowest peak so far the next is looked for, all
    as parts of the peak. Not measured."""
    near: float = 0.1
    """Candidates that take more than this part too much are not repaired: annealing does not get them down. resnet50 at 35 %: every second
    search began with such a one."""
    annealings: tuple[tuple[float, float], ...] = ((0.1, 0.003), (1.0, 0.1), (10.0, 1.0), (1.0, 0.003), (0.3, 0.3))
    """Temperature, in costs of an average operation, and infeasibility penalty at first, in ideal costs: the first to repair, all in turn
    from the incumbent and from nothing recomputed. Repair of shufflenet at 70 %, 50 % and inception_v1 at 50 %: 1.31, 3.31, 3.43 % at (0.1,
    0.003); 1.58, 3.48, 4.07 % at (1, 0.003), 1.34, 3.31, 3.89 % at (0.1, 0.3). From nothing, in groups, four or eight runs each:
    inception_v1 at 38.2 % 19 to 24 % at (1, 0.1), 14 to 25 % at (0.1, 0.01), 21 to 24 % at (10, 1); resnet50_b256 at 11.9 % 16.8 to 19 %,
    nothing, 16.0 to 17.8 %."""
    descents: tuple[tuple[float, float], ...] = ((30.0, 3.0), (100.0, 10.0), (1000.0, 10.0))
    """The same for runs to lower peaks, where costs do not matter. Lowest peaks of three runs of resnet50, four of inception_v1 and vgg19,
    in percent of the peak: 21.7, 39.4, 49.4; 22.3, 37.1, 50.2; 24.3, 36.4, 49.4. At (1, 1): 26.0, 38.0, 51.0. With a cooling of 0.01."""
    last_penalty: float = 100.0
    cooling: float = 1e-3
    """The penalty in the end, and the part of the temperature that is left in the end. resnet50_b256 at 11.9 %, four runs from nothing at
    (30, 3): 19.0 to 20.9 % at 0.01, 16.0 to 19.0 % at 0.001, 16.4 to 17.2 % at 0.0001; inception_v1 and vgg19 tell no difference."""
    chunk_moves: int = 2000
    """Moves between two looks at the clock, on graphs of up to 1,000 operations; fewer on larger ones, where each takes longer."""
    starts: int = 6
    """Candidates that nearly fit and are remembered: two of each of three program lanes."""
    margin_factor: float = 1.2
    margin_programs: int = 4
    """Programs for less than the budget are tried if a replay is near; they get so many times less than it takes too much, and are given up
    after so many. A chain of 10,000 operations at 50 %: 8.62 % where annealing comes to 9.33 %."""
    most_copies: int = 12
    most_steps: int = 64
    looks: int = 8
    """How often an operation may be computed, unless the sequence a run begins with does so more often; recomputations that a move may put
    in or take out at once; tries to find what a move is looking for. Not measured."""
    annealing_moves: int = 300
    move_operations: int = 1000
    doublings: int = 4
    """Moves of an annealing run for each operation, of so many at most: it takes a second or two. Doubled after failures, so many times."""
    search_from_round: int = 2
    """The round in which annealing from nothing recomputed begins, and, without a schedule, the search for lower peaks."""
    restart_tries: int = 3
    """Runs of which the best is gone on with. resnet50_b256 at 11.9 and 13.6 %, 60 s: 14.98 and 11.32 %; 15.68 % with 1 at 11.9 %."""
    descent_fall: float = 0.005
    """How far below the lowest peak so far the next is looked for, relative."""
    small: float = 3e-4
    small_together: float = 0.3
    """A value is small below the first part of the available memory, and all small ones together take at most the second part of what the
    budget leaves beside the least that any schedule needs."""
    group_longest: int = 48
    group_harmless: float = 0.4
    """Operations of a group; it may need this part of the available memory, or as much as its largest member."""
    rounding_epsilons: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
    rounding_thresholds: tuple[float, ...] = (0.5, 0.3, 0.7, 0.15, 0.85, 0.05)
    rounding_samples: int = 24
    rounding_stages: int = 24
    """`lp-rounding`, as in the paper: parts of the budget kept back; thresholds of S, and random roundings of one relaxation; the most
    stages where the full relaxation is too large. With a threshold of a half alone and 29 random roundings, gpt6_joint at 40 % costs 26.2
    instead of 21.8 %, the transformer sample at 70 % 21.2 instead of 14.2 %."""
    entries_per_second: float = 40_000.0
    most_entries: int = 8_000_000
    """Nonzeros that Pyomo builds and compiles in a second, on a slow day; and the most of them that fit into memory."""
    quick_entries: int = 60_000
    """Nonzeros of a model that is solved by the way: above it the MILP of the smallest peak gives no useful limit within a minute."""

    def moves(self, per_operation: int, operations: int) -> int:
        """Of a run, on a graph of so many operations."""
        return per_operation * min(self.move_operations, operations)


PARAMS = Params()
