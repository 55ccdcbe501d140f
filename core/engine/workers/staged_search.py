"""Local search over stages, in the order of a schedule: which values each stage keeps, and so what the next recomputes.

It changes many recomputations at once, which deep networks need: a search over single computations takes long to trade one block for
another. Its schedules are then improved by that one.
"""

from __future__ import annotations

from ...events import Watch
from ...model.problem import Problem
from ...model.transforms.permute import in_original, in_permuted, permuted
from ...schedule.sequence import Candidate, candidate, cheaper
from ...settings import Settings
from ..params import PARAMS
from ..pool import Computations, Report, Snapshot


class Stages:
    """In the order of the incumbent, from the incumbent; or in the graph's own order, from nothing recomputed and from the best that this
    gave, in turn. The problem is looked at in stages that are fine, coarse, or of grouped operations.

    An incumbent in another order is often a dead end for this search: resnet50 at 35 % comes to 8.8 % from it and to 8.3 % in the graph's
    own order, in a quarter of the time.
    """

    is_search = True

    def __init__(self, problem: Problem, settings: Settings, *, own_order: bool) -> None:
        self.name = f"stages {0 if own_order else 1}"
        self._problem, self._settings, self._own_order = problem, settings, own_order
        self._best: Candidate | None = None
        """In the graph's own order."""
        self._runs = 0

    def wants(self, snapshot: Snapshot) -> bool:
        return snapshot.round >= PARAMS.stage_from_round if self._own_order else snapshot.incumbent is not None

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        from ...search.views import views_of  # imports the compiled kernels
        from ...search.warm import ensure_warm

        ensure_warm(watch)
        start, order = self._start(snapshot)
        views = views_of(permuted(self._problem, order))
        seed = (self._settings.seed * 1000 + self._runs) * 10 + self._own_order
        moves = min(PARAMS.stage_moves, PARAMS.stage_moves_per_operation * self._problem.count)
        moves <<= min(self._runs // PARAMS.stage_runs, PARAMS.improve_doublings)
        view = views[self._runs % len(views)]
        self._runs += 1
        found = view.walk(in_permuted(order, start), seed, moves, watch, self._runs % PARAMS.stage_penalties)
        work = moves * self._problem.count * PARAMS.stage_move_work
        if found is None:
            return Report(work=work)
        sequence = in_original(order, found)
        if self._own_order:
            self._best = cheaper(self._best, candidate(self._problem, sequence))
        return Report((("search over stages", sequence),), work=work)

    def _start(self, snapshot: Snapshot) -> tuple[Computations, Computations]:
        """Where to begin, and the order."""
        everything = tuple(range(self._problem.count))
        if not self._own_order:
            assert snapshot.incumbent is not None
            return snapshot.incumbent.sequence, tuple(dict.fromkeys(snapshot.incumbent.sequence))
        from_best = self._best is not None and self._runs // PARAMS.stage_turns % 2
        return (self._best.sequence if from_best and self._best is not None else everything), everything

    def close(self) -> None:
        """Holds nothing."""


class Descent:
    """Where nothing fits: from the candidate of the lowest peak to one of a lower peak, and so on down to the budget."""

    is_search = False

    def __init__(self, problem: Problem, settings: Settings, number: int, *, from_round: int, halvings: int = 0) -> None:
        self.name = f"descent {number}"
        self._problem, self._settings, self._from_round = problem, settings, from_round
        self._runs = number
        """In turn in the order of the candidate and in the graph's own, of several descents one each."""
        self._halvings = halvings
        """How often the way to the budget is halved at first: where the budget is only a limit, the whole way is a waste."""
        self._failed = halvings
        self._reached = 0

    def wants(self, snapshot: Snapshot) -> bool:
        has_given_up = self._failed > PARAMS.descent_halvings * (1 + PARAMS.improve_doublings)
        return not has_given_up and snapshot.incumbent is None and snapshot.lowest is not None and snapshot.round >= self._from_round

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        """A schedule for a budget on the way: half as far after each failure, twice as far after a success."""
        assert snapshot.lowest is not None
        start = snapshot.lowest
        self._failed = self._failed + 1 if start.peak == self._reached else max(self._halvings, self._failed - 1)
        self._reached = start.peak
        far = max(1, start.peak - self._problem.budget)
        goal = start.peak - max(1, far >> self._failed % PARAMS.descent_halvings)
        found = self._search(start.sequence, self._problem.with_budget(goal), watch)
        work = PARAMS.descent_moves * self._problem.count * PARAMS.stage_move_work
        return Report(() if found is None else (("descent", found),), work=work, phase=f"descent to {goal} bytes")

    def _search(self, start: Computations, target: Problem, watch: Watch) -> Computations | None:
        from ...search.views import search_views  # imports the compiled kernels
        from ...search.warm import ensure_warm

        ensure_warm(watch)
        self._runs += 1
        seed = self._settings.seed * 1000 + self._runs
        order = tuple(dict.fromkeys(start)) if self._runs % 2 else tuple(range(target.count))
        starts = [in_permuted(order, start)] if self._runs % 2 else [tuple(range(target.count))]
        rounds = self._failed // PARAMS.descent_halvings
        moves = min(PARAMS.descent_moves, PARAMS.descent_moves_per_operation * target.count) << min(rounds, PARAMS.improve_doublings)
        found = search_views(permuted(target, order), starts, seed, moves, watch, 1)
        return None if found is None else in_original(order, found)

    def close(self) -> None:
        """Holds nothing."""
