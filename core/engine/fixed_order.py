"""Solving under one order of first computations.

Heuristics for a first schedule; then a relaxation that is cut ever finer gives bounds and starts, local searches on the other core make
schedules of them; then MILPs from the best schedule close what gap is left.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from ..baselines.best import KNOWN, best_baseline, infeasible, keep_everything
from ..bounds.relaxing import Relaxing
from ..events import Event, Watch, relative_gap
from ..milp.stages import liveness_entries, merged_runs, single_runs
from ..model.problem import Problem
from ..result import Result, Status, Stop
from ..rounding.lp_rounding import round_relaxation
from ..schedule.sequence import Candidate, candidate, profile
from ..search.splice import MOST_INSISTENT
from ..search.views import View, ZoneView, recomputing_no_more, search_views, views_of
from ..search.walkers import WALKERS, walkers
from ..settings import FormulationName, Settings
from .descent import descend
from .exact import fits_in_time, solve_exactly
from .neighbourhood import improve
from .optimal import solve_from
from .turns import Turns, Way, ZoneTurn, ZoneTurns

EXACT_ENTRIES = 400_000
"""Above this many nonzeros the exact model rarely gets anywhere in a minute: merged stages come first."""
FIRST_MOVES = 40_000
MOVES_PER_OPERATION = 200
LONGER_EVERY = 8
MOST_DOUBLINGS = 5
"""The first rounds of local search take the smaller of these; after so many rounds each it is doubled, up to so many times."""
ROUNDS_BESIDE = 4
ROUNDS_BESIDE_CHOOSING = 8
ROUNDS_BESIDE_ZONES = 2
ROUNDS_AFTER_ZONES = 8
QUICKLY_SOLVED = 150
QUICKLY_SEARCHED = 1000
"""Rounds of search beside an integer program, which takes its time, beside the many that choose a few stages, beside one with zones, which
is quick, and after the last of those. On graphs up to the first size, whose programs are quick, only one; up to the second twice as many
with every program."""
BELIEFS = (4, 2, 8)
LITTLE = 0.02
"""A relaxation is believed about operations that cost more than one of these parts of the gap, in turn; where there is no schedule so far,
this share of the bound is taken for the gap."""
OTHERS_EVERY = 4
"""Where there are zones, every so many walks one that knows nothing of them."""
HOPELESS = 0.05
"""A schedule so much dearer than one in another order will not become cheaper than that."""
FAR = 0.005
"""What a walk finds is as good as nothing if it is so much dearer than the best."""
HEURISTICS_SHARE = 0.05
PROGRAM_SHARE = 0.35
CHOOSING_SHARE = 0.5
"""Of the time that is left, for the heuristics, for one program, and for choosing where few stages should end."""
STUCK = 2
STUCK_WITH_ZONES = 8
DESCENT_SHARE = 0.5
"""Rounds of search without a schedule that fits, after which this part of the time that is left goes into coming down to the budget."""
DESCENT_MOVES = 60
"""Moves per operation for each step of a descent."""
STAGES = 24
"""Of the merged-stage MILP."""
NEIGHBOURHOODS = 3
NEIGHBOURHOOD_SHARE = 0.15
"""Rounds of neighbourhood MILPs, and the part of the time that is left for each."""
RELAXATION = "relaxation"
"""Who finds what a search should begin with even if it does not fit."""

Found = tuple[tuple[str, tuple[int, ...]], ...]
"""Schedules and who found them, whether or not they fit."""


def fixed_order(problem: Problem, settings: Settings, watch: Watch) -> Result:
    """Relaxations cut ever finer for bounds, local search for schedules, MILPs from the best: for graphs of any size."""
    if isinstance(settings.known.unfinished, _FixedOrder):
        return settings.known.unfinished.go_on(settings, watch)
    known = infeasible(problem) or keep_everything(problem)
    return known if known is not None else _FixedOrder(problem, settings, watch).run()


class _FixedOrder:
    """The best schedule and the best bound so far, and the phases that improve them."""

    def __init__(self, problem: Problem, settings: Settings, watch: Watch) -> None:
        self.problem = problem
        self.settings = settings
        self.watch = watch
        self.best: tuple[int, ...] | None = None
        self.best_cost = float("inf")
        self.found_by = ""
        self.bound = max(problem.ideal_cost, settings.known.bound)
        self.round = 0
        self.programs = 0
        self.begun = 0
        self.believed = 0
        """Rounds of search, integer programs, walks from what a relaxation gave and that believed it, so far."""
        self.views = views_of(problem)
        self.turns = Turns(len(self.views) + 1)
        """The views, and one in which what a relaxation says of dear operations is believed."""
        self.zone_turns = ZoneTurns(problem)
        self.lowest = tuple(range(problem.count))
        self.descents = 0
        """Where the last descent to the budget ended, and how many there were."""
        self.zoned = False
        """Do relaxations know zones? Then their schedules are worth searching from even when there is nothing left to cut."""
        self.relaxed: list[tuple[int, ...]] = []
        """What relaxations gave, the last one last, each of which may take a little too much."""
        self.relaxing: Relaxing | None = None

    def go_on(self, settings: Settings, watch: Watch) -> Result:
        """Take the work up again where it was left."""
        self.settings = settings
        self.watch = watch
        self.bound = max(self.bound, settings.known.bound)
        if self.relaxing is not None:
            self.relaxing.take_up_again()
        return self.run()

    def run(self) -> Result:
        self.offer(self.settings.known.sequence, KNOWN)
        if self.best is None:
            found = best_baseline(self.problem, self.settings, self.watch.part(self.watch.remaining * HEURISTICS_SHARE))
            if found is not None:
                self.offer(found.sequence, found.found_by)
        if self.settings.formulation is FormulationName.PAPER and self.settings.iterations is None:
            return self.solve_exact()
        self.relax()
        if self.zoned and not self.done:
            self.take(self.search(ROUNDS_AFTER_ZONES, WALKERS))
        if self.best is None and not self.done:
            self.take(self.come_down())
        if self.settings.iterations is None and not self.done:
            entries = liveness_entries(self.problem, single_runs(self.problem))
            if entries <= EXACT_ENTRIES and fits_in_time(entries, self.watch):
                self.offer(round_relaxation(self.problem, self.settings, self.watch.part(self.watch.remaining / 4)), "lp-rounding")
                return self.solve_exact()
            self.side_by_side(self.solve_merged, partial(self.search, ROUNDS_BESIDE))
            for _ in range(NEIGHBOURHOODS):
                self.side_by_side(partial(self.solve_neighbourhoods, self.round), partial(self.search, ROUNDS_BESIDE))
        while not self.done and self.best is not None:
            self.take(self.search(1, WALKERS))
        return self.conclude()

    @property
    def done(self) -> bool:
        return self.watch.expired or self.spent or self.hopeless or relative_gap(self.best_cost, self.bound) <= self.settings.gap

    @property
    def hopeless(self) -> bool:
        """Has searching with zones led to something, but to nothing like what is known of another order?"""
        return self.zone_turns.begun and self.settings.known.elsewhere * (1 + HOPELESS) < self.best_cost < float("inf")

    @property
    def spent(self) -> bool:
        return self.settings.iterations is not None and self.round >= self.settings.iterations

    def offer(self, sequence: tuple[int, ...] | None, name: str) -> None:
        """Take a schedule if it fits and is cheaper."""
        if sequence is None:
            return
        made = profile(self.problem, sequence)
        if made.peak <= self.problem.budget and made.cost < self.best_cost:
            self.best, self.best_cost, self.found_by = sequence, made.cost, name
            self.watch.on_event(Event(name, made.cost, self.bound))

    def relax(self) -> None:
        """Bounds and schedules from the relaxation, until it has no more to give."""
        if self.relaxing is None:
            self.relaxing = Relaxing(self.problem, self.settings)
        relaxing = self.relaxing
        relaxing.bound = max(relaxing.bound, self.bound)
        while not self.done and not relaxing.exhausted:
            stuck = self.best is None and self.round >= (STUCK_WITH_ZONES if self.zone_turns else STUCK)
            if relaxing.is_quick:
                self.take(self.solve_relaxation(relaxing))
            elif relaxing.is_selecting and self.best is None and not stuck:
                self.take(self.search(STUCK))
            else:
                other = self.come_down if stuck else partial(self.search, self.rounds_beside(relaxing))
                self.side_by_side(partial(self.solve_relaxation, relaxing), other)
            if relaxing.bound < float("inf"):
                self.bound = max(self.bound, relaxing.bound)
            self.zoned = relaxing.has_zones
            self.zone_turns.add(relaxing.passages)

    def rounds_beside(self, relaxing: Relaxing) -> int:
        if relaxing.next_is_linear:
            return 1
        if relaxing.is_selecting:
            return ROUNDS_BESIDE_CHOOSING
        self.programs += 1
        if self.problem.count <= QUICKLY_SOLVED:
            return 1
        if relaxing.has_zones:
            return ROUNDS_BESIDE_ZONES
        doublings = min(self.programs - 1, MOST_DOUBLINGS) if self.problem.count <= QUICKLY_SEARCHED else 0
        return ROUNDS_BESIDE << doublings

    def solve_relaxation(self, relaxing: Relaxing) -> Found:
        share = CHOOSING_SHARE if relaxing.is_selecting or relaxing.has_zones else PROGRAM_SHARE
        found = relaxing.advance(self.watch.part(self.watch.remaining * share), self.best)
        return () if found is None else ((RELAXATION, found),)

    def take(self, found: Found) -> None:
        for name, sequence in found:
            if name == RELAXATION:
                self.relaxed = [*(other for other in self.relaxed if other != sequence), sequence]
            self.offer(sequence, name)

    def side_by_side(self, one: Callable[[], Found], other: Callable[[], Found]) -> None:
        """Two things at once, unless one thread was asked for: solvers run in a process of their own, kernels without Python's lock.

        What they find is taken when both are done, so that it does not matter which is first.
        """
        if self.done:
            return
        with walkers(self.settings.threads) as pool:
            running = [pool.submit(one), pool.submit(other)]
            found = [work.result() for work in running]
        for each in found:
            self.take(each)

    def search(self, rounds: int = 1, walks: int = 1) -> Found:
        """Walks from what the relaxation last gave and from the best schedule in turn, each in one of the views of the problem.

        Many walks of moderate length find more than few long ones. What one finds is where the next may begin.
        """
        everything = tuple(range(self.problem.count))
        best, best_cost = self.best, self.best_cost
        found: list[tuple[str, tuple[int, ...]]] = []
        self.watch.on_event(Event("search"))
        for _ in range(rounds):
            if self.watch.expired or self.spent or relative_gap(best_cost, self.bound) <= self.settings.gap:
                break
            moves = min(FIRST_MOVES, MOVES_PER_OPERATION * self.problem.count) << min(self.round // LONGER_EVERY, MOST_DOUBLINGS)
            made: list[tuple[Way | ZoneTurn, str, Future[tuple[int, ...] | None]]] = []
            with walkers(self.settings.threads) as pool:
                for number in range(walks):
                    seed = self.settings.seed * 1000 + 2 * self.round + number
                    if self.zone_turns.is_urgent or (self.zone_turns and (self.round + number) % OTHERS_EVERY):
                        turn = self.zone_turns.next()
                        start, zones = self.zone_start_and_view(turn, best, best_cost)
                        made.append((turn, zones.name, pool.submit(zones.walk, start or everything, seed, moves, self.watch, turn.walks)))
                        continue
                    way = self.turns.next()
                    insistence = self.turns.round % (MOST_INSISTENT + 1)
                    start, view = self.start_and_view(way, best, best_cost)
                    made.append((way, view.name, pool.submit(view.walk, start or everything, seed, moves, self.watch, insistence)))
            self.round += 1
            for turn_of, name, work in made:
                sequence = work.result()
                cost = float("inf") if sequence is None else profile(self.problem, sequence).cost
                if isinstance(turn_of, Way):
                    self.turns.tell(turn_of, failed=cost > best_cost * (1 + FAR) or sequence is None)
                else:
                    self.zone_turns.tell(turn_of, cost)
                if sequence is None:
                    continue
                found.append((name, sequence))
                self.watch.on_event(Event(name, cost, self.bound))
                if cost < best_cost:
                    best, best_cost = sequence, cost
        return tuple(found)

    def start_and_view(self, way: Way, best: tuple[int, ...] | None, best_cost: float) -> tuple[tuple[int, ...] | None, View]:
        """Where a walk begins, and what it may change. With zones, relaxations are so near that they are believed more often."""
        plain = len(self.views) - 1
        if way.view < plain or (way.view == plain and (way.from_best or not self.zoned)):
            return (best if way.from_best else self.relaxed_start()), self.views[way.view]
        start = self.relaxed_start()
        if start is None or best is None:
            return best, self.views[-1]
        self.believed += 1
        dear = (best_cost - self.bound) / BELIEFS[self.believed % len(BELIEFS)]
        return start, View("trusting search", recomputing_no_more(self.problem, start, dear))

    def zone_start_and_view(
        self, turn: ZoneTurn, best: tuple[int, ...] | None, best_cost: float
    ) -> tuple[tuple[int, ...] | None, ZoneView]:
        """At first from where nothing is recomputed outside zones; then from the best schedule, or from what a relaxation gave."""
        if not turn.trusting:
            return (None if turn.is_early else best), turn.view
        over = LITTLE * self.bound if best is None else best_cost - self.bound
        trusting = turn.view.recomputing_no_more(turn.again, over / BELIEFS[turn.beliefs % len(BELIEFS)])
        return (self.relaxed_start() if turn.beliefs % 2 else None), trusting

    def relaxed_start(self) -> tuple[int, ...] | None:
        """The last that a relaxation gave and one of the earlier ones in turn."""
        if not self.relaxed:
            return None
        self.begun += 1
        return self.relaxed[-1] if self.begun % 2 else self.relaxed[-1 - self.begun // 2 % len(self.relaxed)]

    def come_down(self) -> Found:
        """Down to the budget, from where the last descent ended."""
        watch = self.watch.part(self.watch.remaining * DESCENT_SHARE)
        moves = min(FIRST_MOVES, DESCENT_MOVES * self.problem.count)
        seed = self.settings.seed * 1000 + 100 * self.descents
        self.descents += 1
        self.round += 1

        def search(target: Problem, start: tuple[int, ...], number: int) -> tuple[int, ...] | None:
            return search_views(target, [start], number, moves, watch, self.settings.threads)

        self.lowest = descend(self.problem, self.lowest, seed, search, watch)
        return (("descent", self.lowest),)

    @property
    def incumbent(self) -> Candidate | None:
        return None if self.best is None else candidate(self.problem, self.best, self.found_by)

    def solve_merged(self) -> Found:
        """A merged-stage MILP from the best schedule; its schedules are real, its bound is none."""
        runs = merged_runs(self.problem, STAGES)
        if not fits_in_time(liveness_entries(self.problem, runs), self.watch):
            return ()
        found = solve_exactly(self.problem, self.settings, self.watch.part(self.watch.remaining / 4), runs, self.incumbent)
        found_by = f"{self.settings.solver} with {len(runs)} stages"
        return () if found.candidate is None else ((found_by, found.candidate.sequence),)

    def solve_neighbourhoods(self, number: int) -> Found:
        """MILPs in which most of the best schedule stands and a part is free."""
        if self.best is None:
            return ()
        settings = replace(self.settings, seed=self.settings.seed * 1000 + number)
        found = improve(self.problem, settings, self.watch.part(self.watch.remaining * NEIGHBOURHOOD_SHARE), self.best)
        return () if found is None else (("neighbourhoods", found),)

    def solve_exact(self) -> Result:
        """The exact MILP from here on. If it stops early, the relaxation's bound may be the better one."""
        solution = solve_from(self.problem, self.settings, self.watch, self.incumbent)
        if solution.sequence is None:
            return solution
        self.offer(solution.sequence, str(solution.provenance.get("found_by", "")))
        self.bound = min(max(self.bound, solution.bound or 0.0), self.best_cost)
        return self.conclude(solution.stop)

    def conclude(self, stop: Stop | None = None) -> Result:
        watch, settings = self.watch, self.settings
        stopped = stop or (Stop.INTERRUPTED if watch.interrupted() else Stop.TIME_LIMIT if watch.expired else Stop.FINISHED)
        provenance: dict[str, str | int | float] = {"solver": settings.solver, "formulation": settings.formulation}
        if settings.iterations is not None:
            provenance["iterations"] = settings.iterations
        if self.best is None:
            return Result(Status.UNKNOWN, stopped, None, self.bound, "no schedule was found", provenance=provenance, unfinished=self)
        proven = relative_gap(self.best_cost, self.bound) <= settings.gap
        status, why = (Status.OPTIMAL, Stop.FINISHED) if proven else (Status.FEASIBLE, stopped)
        provenance["found_by"] = self.found_by
        return Result(status, why, self.best, min(self.bound, self.best_cost), provenance=provenance, unfinished=self)
