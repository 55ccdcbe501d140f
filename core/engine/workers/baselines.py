"""The paper's baselines as workers: the quick ones first of all, so that there is a schedule at any size; the others if nothing else
fits."""

from __future__ import annotations

from collections.abc import Sequence

from ...baselines import get_baseline
from ...events import Watch
from ...model.problem import Problem
from ...schedule.sequence import in_stage_order, prune
from ...settings import Settings
from ..pool import Report, Snapshot

QUICK = ("chen-sqrt", "ap-sqrt", "linearized-sqrt")
"""Together 1 s on a chain of 20,000 operations; those below take 4 to 6 s each there."""
SLOW = ("griewank", "chen-greedy", "ap-greedy", "linearized-greedy", "last-node")


class Baselines:
    """A few of them in one slice each, in turn."""

    is_search = False

    def __init__(self, problem: Problem, settings: Settings, names: Sequence[str], *, from_round: int = 0) -> None:
        self.name = "baselines"
        self._problem, self._settings, self._names, self._from_round = problem, settings, names, from_round
        self._tried = 0

    def wants(self, snapshot: Snapshot) -> bool:
        return snapshot.incumbent is None and self._tried < len(self._names) and snapshot.round >= self._from_round

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        """The quick ones all at once, the others one by one."""
        names = self._names if not self._from_round else self._names[self._tried : self._tried + 1]
        self._tried += len(names)
        found: list[tuple[str, tuple[int, ...]]] = []
        for name in names:
            sequence = get_baseline(name)(self._problem, self._settings, watch).sequence
            if sequence is not None:
                found += [(name, variant) for variant in (prune(self._problem, sequence), in_stage_order(self._problem, sequence))]
        return Report(tuple(found))

    def close(self) -> None:
        """Holds nothing."""
