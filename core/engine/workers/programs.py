"""Any-order programs with ever better breakpoints: bounds, and the schedules behind them.

One breakpoint is often enough. The integer solution is replayed; where the replay takes too much, its computations are put in a better
order; and where that still takes too much, the first computation that ends the worst excess becomes a breakpoint too, and so on. Where it
is not comparable with some breakpoints, it takes their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...events import Event, Watch
from ...labels.tail import Tail
from ...milp.any_order import AnyOrderProgram
from ...params import PARAMS
from ...result import Status
from ...schedule.sequence import Candidate
from ...settings import Settings
from ...solvers import get_solver
from ...solvers.sliced import Slice, SlicedProgram, looks_per_slice, sliced
from ..breakpoints import Ground, likeliest
from ..pool import Computations, Report, Snapshot
from ..replaying import excesses


class ProgramLane:
    """One program after the other, from the first breakpoints on."""

    is_search = False

    def __init__(
        self,
        ground: Ground,
        settings: Settings,
        rank: int,
        *,
        cuts: bool = False,
        tails: bool = False,
        from_round: int = 0,
        chain: Sequence[int] = (),
    ) -> None:
        self.name = f"programs {rank}"
        self.ground, self.settings = ground, settings
        self._from_round = from_round
        self._chain: list[int] = list(chain)
        """The breakpoints. If none are given, it begins with the best one; in the very first round with the likeliest, unseen."""
        self._unseen = False
        self._cuts = cuts
        self._with_tails = tails
        self._tails: dict[tuple[int, bool], Tail | None] = {}
        """By the breakpoints that they begin with: fine ones, and coarse ones to compare breakpoints."""
        self._dearest = float("inf")
        """Recomputations that cost more than the incumbent's are of no interest."""
        self.best: tuple[float, list[int]] = (0.0, [])
        """The best bound so far, and its breakpoints."""
        self._by_linear_programs = not cuts and ground.problem.count <= PARAMS.breakpoints_operations
        """Are the next breakpoints compared by linear programs, or is the first by rating taken?"""
        self._tried: set[Computations] = set()
        self._program: AnyOrderProgram | None = None
        self._run: SlicedProgram | None = None
        self._looks = 0
        self._patience = PARAMS.program_looks
        self._lowest: Candidate | None = None
        """Of the present program's replays, that of the lowest peak, in the best order found."""
        self._objective = self._bound = float("inf")
        """Of the present program's best solution, and what was proven."""
        self._order_work = 0.0
        self._exhausted = False

    def wants(self, snapshot: Snapshot) -> bool:
        if self._exhausted or snapshot.round < self._from_round:
            return False
        return not self._with_tails or self._run is not None or snapshot.is_far_from_proven

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        if not self._chain or (self._unseen and self._run is None):
            self._choose_first(snapshot, watch)
        if self._run is None:
            self._begin(snapshot, watch)
            if self._says_nothing_new:
                self._exhausted = True
                return Report()
        assert self._run is not None
        program = self._program
        assert program is not None
        phase = self._phase(program)
        slice_ = self._run.advance(watch)
        looks = looks_per_slice(program.form)
        self._looks += looks
        if slice_.status is Status.INFEASIBLE:
            infeasible = self._is_infeasible(program, watch)
            self._exhausted = True
            return Report(order=self.ground.order, infeasible=infeasible, phase=phase)
        self._bound = (slice_.bound - PARAMS.bound_safety * abs(slice_.bound)) * program.unit
        self.best = max(self.best, (self._bound, self._chain))
        found = self._schedules(program, slice_, snapshot, watch)
        if self._is_done(slice_, snapshot):
            self._next(watch, is_solved=slice_.status is Status.OPTIMAL)
        work = looks * program.columns * PARAMS.look_work + self._order_work
        return Report(tuple(found), self._bound, self.ground.order, phase=phase, work=work)

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None

    def _choose_first(self, snapshot: Snapshot, watch: Watch) -> None:
        """In the first round there is no time to compare; after it, what was chosen so is left if others promise more."""
        if not snapshot.round:
            self._chain, self._unseen = [likeliest(self.ground)], True
            return
        rated = self.ground.rated(watch)
        bound, first = rated[0]
        if not self._chain or bound > snapshot.any_bound * (1 + PARAMS.fine_gap):
            self._chain = [first]
        self._unseen = False

    def _phase(self, program: AnyOrderProgram) -> str:
        count = len(self._chain)
        return f"any-order program: {count} breakpoint{'s' if count != 1 else ''}, {program.columns} variables"

    def _begin(self, snapshot: Snapshot, watch: Watch) -> None:
        self._tried.add(tuple(self._chain))
        self._dearest = snapshot.cost - self.ground.problem.ideal_cost
        tails = self._tails_of(self._chain, watch, fine=True)
        program = self._program = self.ground.program(self._chain, cuts=self._cuts, tails=tails)
        watch.on_event(Event(self._phase(program)))
        incumbent = snapshot.incumbent
        start = program.start(incumbent.sequence) if incumbent is not None and self._keeps_order(incumbent.sequence) else None
        good_enough = snapshot.any_bound * (1 + PARAMS.fine_gap / 2) / program.unit
        settings = replace(self.settings, gap=PARAMS.fine_gap / 2, threads=1, good_enough=good_enough)
        self._run = sliced(program.form, settings, start)
        self._looks = 0
        self._lowest, self._objective, self._bound = None, float("inf"), 0.0

    @property
    def _says_nothing_new(self) -> bool:
        """Is this a lane with tails, for any order, where there are none?"""
        return self._with_tails and self.ground.order is None and not any(self._tails.values())

    def _tails_of(self, chain: Sequence[int], watch: Watch, *, fine: bool) -> list[Tail]:
        """The tails that begin with the breakpoints, if they are asked for by now."""
        if not self._with_tails:
            return []
        from ...labels.label_setting import Effort, find_tail  # imports the compiled kernels

        ground, effort = self.ground, Effort(PARAMS.tail_labels, PARAMS.tail_rounds if fine else 0)
        for operation in chain:
            if (operation, fine) not in self._tails and not watch.expired:
                found = find_tail(ground.bounding, ground.precedence, operation, self._dearest, effort, watch)
                self._tails[operation, fine] = found
        return [tail for operation in chain if (tail := self._tails.get((operation, fine))) is not None]

    def _schedules(self, program: AnyOrderProgram, slice_: Slice, snapshot: Snapshot, watch: Watch) -> list[tuple[str, Computations]]:
        """Replays of the newest solution, as they are and in a better order."""
        self._order_work = 0.0
        if not slice_.found:
            return []
        problem = self.ground.problem
        values = slice_.found[-1]
        self._objective = float(program.form.objective @ values) * program.unit
        made = self.ground.replayed(self._chain, program.stages(values))
        lowest = min(made[:2], key=lambda each: each.peak)  # a thinned replay is another schedule: it does not say where to break
        is_small = problem.count <= PARAMS.order_operations
        if not lowest.fits(problem) and self.ground.order is None and is_small and not watch.expired:
            from ..reordering import lower_peak  # imports the compiled kernels

            lowest = lower_peak(problem, lowest, self.settings.seed, watch)
            self._order_work = PARAMS.moves(PARAMS.order_moves, problem.count) * PARAMS.move_work
        self._lowest = lowest
        return [("any-order program", each.sequence) for each in {lowest.sequence: lowest, **{e.sequence: e for e in made}}.values()]

    def _is_done(self, slice_: Slice, snapshot: Snapshot) -> bool:
        """Is the program solved, has it had its share, or is what is left of its own gap small beside the gap of the pool?"""
        if slice_.is_over:
            return True
        if self._lowest is None or self._lowest.fits(self.ground.problem):
            return False
        own, whole = self._objective - self._bound, snapshot.cost - snapshot.any_bound
        return self._looks >= self._patience or own <= PARAMS.small_part * whole

    def _next(self, watch: Watch, *, is_solved: bool) -> None:
        """Choose the next breakpoints."""
        self.close()
        if not is_solved:
            self._patience *= 2
        if self._lowest is None or self._lowest.fits(self.ground.problem):
            self._exhausted = True
            return
        chains = self._longer_chains()
        if self._by_linear_programs and len(chains) > 1 and not watch.expired:
            chains.sort(key=lambda chain: self._linear_bound(chain, watch), reverse=True)
        if chains:
            self._chain = chains[0]
        self._exhausted = not chains

    def _linear_bound(self, chain: list[int], watch: Watch) -> float:
        return self.ground.linear_bound(chain, watch, cuts=self._cuts, tails=self._tails_of(chain, watch, fine=False))

    def _longer_chains(self) -> list[list[int]]:
        """With one of the first computations that end an excess, the worst first, weighted by how many operations it is comparable with and
        how far it is from the other breakpoints. Those come last for which other breakpoints, not comparable with them, must go."""
        assert self._lowest is not None
        problem, precedence, places = self.ground.problem, self.ground.precedence, self.ground.places
        share, far = precedence.comparable_shares, max(1, problem.count // PARAMS.far_apart)

        def rating(excess: int, operation: int) -> float:
            nearest = min(abs(places[operation] - places[other]) for other in self._chain)
            return float(excess * share[operation] ** 2 * min(nearest, far) ** 0.5)

        rated = sorted(((rating(*each), each[1]) for each in excesses(problem, self._lowest.sequence)), reverse=True)
        apart = problem.count // PARAMS.breakpoints_apart
        longer: list[list[int]] = []
        exchanged: list[list[int]] = []
        chosen: list[int] = []
        for _, operation in rated:
            if operation in self._chain or any(abs(places[operation] - places[other]) < apart for other in chosen):
                continue
            relatives = precedence.relatives(operation)
            comparable = [other for other in self._chain if relatives.comparable(other)]
            chain = precedence.in_order([operation, *comparable])
            if tuple(chain) not in self._tried:
                chosen.append(operation)
                (longer if len(comparable) == len(self._chain) else exchanged).append(chain)
            if len(longer) == PARAMS.breakpoints_each:
                break
        return (longer + exchanged)[: PARAMS.breakpoints_each]

    def _keeps_order(self, sequence: Computations) -> bool:
        return self.ground.order is None or tuple(dict.fromkeys(sequence)) == self.ground.order

    def _is_infeasible(self, program: AnyOrderProgram, watch: Watch) -> bool:
        """That nothing fits is a claim without a proof to check: ask once more, without presolve, which has been wrong before."""
        settings = replace(self.settings, gap=0.5, threads=1, presolve=False)
        return get_solver(self.settings.solver).solve(program.form, settings, watch).status is Status.INFEASIBLE
