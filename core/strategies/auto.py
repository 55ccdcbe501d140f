"""The default: heuristics, local search and a proven bound first, then the MILP from there."""

from __future__ import annotations

from ..events import Event, Watch, relative_gap
from ..milp.runs import liveness_entries, merged_runs, single_runs
from ..problem import Problem
from ..result import Solution, Status, Stop
from ..search.local import search
from ..sequence import profile
from ..settings import Settings
from .exact import fits_in_time, solve_exactly
from .incumbent import best_heuristic, infeasible, keep_everything
from .lp_rounding import round_relaxation
from .optimal import solve_from
from .windows_bound import windows_bound

EXACT_ENTRIES = 400_000
"""Above this many nonzeros the exact model rarely gets anywhere in a minute: merged stages come first."""
FIRST_MOVES = 40_000
MOVES_PER_OPERATION = 200
"""The first round of local search takes the smaller of these; each later round doubles it."""
STAGES = (12, 24, 48, 96)
"""Of the merged-stage MILPs."""


def auto(problem: Problem, settings: Settings, watch: Watch) -> Solution:
    """Heuristics, local search and a bound, then MILP from there: exact for small graphs, merged stages for large ones."""
    known = infeasible(problem) or keep_everything(problem)
    return known if known is not None else _Auto(problem, settings, watch).run()


class _Auto:
    """The best schedule and the best bound so far, and the phases that improve them."""

    def __init__(self, problem: Problem, settings: Settings, watch: Watch) -> None:
        self.problem = problem
        self.settings = settings
        self.watch = watch
        self.best: tuple[int, ...] | None = None
        self.best_cost = float("inf")
        self.found_by = ""
        self.bound = problem.ideal_cost
        self.round = 0

    def run(self) -> Solution:
        problem, settings, watch = self.problem, self.settings, self.watch
        self.offer(*best_heuristic(problem, settings, watch))
        entries = liveness_entries(problem, single_runs(problem))
        exact = settings.formulation == "paper" or (entries <= EXACT_ENTRIES and fits_in_time(entries, watch))
        self.search(self.starts())
        if not exact or settings.formulation != "paper":
            self.raise_bound()
        if not self.done:
            self.offer(round_relaxation(problem, settings, watch.part(watch.remaining / 4)), "lp-rounding")
            self.search(self.starts())
        if exact and not self.done:
            return self.with_bound(solve_from(problem, settings, watch, self.best, self.found_by))
        for count in STAGES:
            self.solve_merged(count)
            self.search(self.starts())
        while not self.done and self.best is not None:
            self.search(self.starts())
        return self.conclude()

    @property
    def done(self) -> bool:
        return self.watch.expired or relative_gap(self.best_cost, self.bound) <= self.settings.gap

    def starts(self) -> list[tuple[int, ...]]:
        """Where walks begin: keeping everything, and the best so far."""
        everything = tuple(range(self.problem.count))
        if self.best is None:
            return [everything, everything]
        return [everything, self.best] if self.round < 2 else [self.best, self.best]

    def offer(self, sequence: tuple[int, ...] | None, name: str) -> None:
        """Take a schedule if it fits and is cheaper."""
        if sequence is None:
            return
        made = profile(self.problem, sequence)
        if made.peak <= self.problem.budget and made.cost < self.best_cost:
            self.best, self.best_cost, self.found_by = sequence, made.cost, name
            self.watch.on_event(Event(name, made.cost, self.bound))

    def search(self, starts: list[tuple[int, ...]]) -> None:
        if not self.done:
            moves = min(FIRST_MOVES, MOVES_PER_OPERATION * self.problem.count) << self.round
            self.round += 1
            self.offer(search(self.problem, starts, self.settings.seed + self.round, moves, self.watch), "search")

    def raise_bound(self) -> None:
        if not self.done:
            part = self.watch.part(self.watch.remaining / 3)
            self.bound = max(self.bound, windows_bound(self.problem, self.settings, part, self.best))

    def solve_merged(self, count: int) -> None:
        """A merged-stage MILP from the best schedule; its schedules are real, its bound is none."""
        runs = merged_runs(self.problem, count)
        if not self.done and fits_in_time(liveness_entries(self.problem, runs), self.watch):
            found = solve_exactly(self.problem, self.settings, self.watch.part(self.watch.remaining / 3), runs, self.best)
            self.offer(found.sequence, f"{self.settings.solver} with {len(runs)} stages")

    def with_bound(self, solution: Solution) -> Solution:
        """The exact MILP stopped early: the relaxation's bound may be the better one."""
        if solution.sequence is None:
            return solution
        self.offer(solution.sequence, str(solution.provenance.get("found_by", "")))
        self.bound = min(max(self.bound, solution.bound or 0.0), self.best_cost)
        return self.conclude(solution.stop)

    def conclude(self, stop: Stop | None = None) -> Solution:
        watch, settings = self.watch, self.settings
        stopped = stop or (Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired else Stop.FINISHED)
        provenance: dict[str, str | int | float] = {"solver": settings.solver, "formulation": settings.formulation}
        if self.best is None:
            return Solution(Status.UNKNOWN, stopped, None, self.bound, "no schedule was found", provenance=provenance)
        proven = relative_gap(self.best_cost, self.bound) <= settings.gap
        status, why = (Status.OPTIMAL, Stop.FINISHED) if proven else (Status.FEASIBLE, stopped)
        return Solution(status, why, self.best, min(self.bound, self.best_cost), provenance=provenance | {"found_by": self.found_by})
