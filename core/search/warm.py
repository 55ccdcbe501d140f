"""Compiling the kernels, before any clock runs.

Their compiled form is cached on disk, so this takes seconds once on a machine and nothing later; and half as many with a second process.
"""

from __future__ import annotations

import time
from threading import Lock

from ..events import Event, Watch
from ..jit.beside import done_beside
from ..labels.label_setting import labels_by
from ..model.costs import Costs
from ..model.graph import Graph, Operation, Value
from ..model.precedence import PartialOrder
from ..model.problem import Problem, build_problem
from . import splice_kernels
from .order import find_order
from .splice import Annealing, anneal_sequence


def warm_up_before(watch: Watch) -> None:
    """Every way into the search begins here: importing and compiling are no part of the work, and take nothing from its time."""
    watch.on_event(Event("loading the search (compiled on first use)"))
    warm_up()
    watch.restart()


_once = Lock()
_is_warm = False


def ensure_warm(watch: Watch) -> None:
    """The same in the middle of the work, for whoever searches first: the clock is set forward by what it takes."""
    global _is_warm
    with _once:
        if not _is_warm:
            begun = time.monotonic()
            watch.on_event(Event("loading the search (compiled on first use)"))
            warm_up()
            watch.started += time.monotonic() - begun
            _is_warm = True


def warm_up() -> None:
    """Run every kernel once, on a problem so small that only compiling takes time."""
    problem = _two_branches()
    with done_beside(warm_up_splices, (splice_kernels.reset, splice_kernels.anneal)):
        find_order(problem, 0, 10, Watch())
        labels_by(problem, PartialOrder(problem), 0, (0, 1), float("inf"), 10)
    warm_up_splices()


def warm_up_splices() -> None:
    """The kernels of the search over sequences, which take almost as long to compile as all others together."""
    problem = _two_branches()
    anneal_sequence(problem, range(problem.count), Annealing(1.0, 1.0), 0, 1, Watch(), free=True)


def _two_branches() -> Problem:
    """Two branches side by side, which take less memory one after the other: there is something to find in it."""
    inputs = ((), (), (0,), (1,), (2, 3))
    operations = tuple(Operation(str(number), "", read, (number,)) for number, read in enumerate(inputs))
    values = tuple(Value(str(number), size) for number, size in enumerate((10, 10, 1, 1, 1)))
    count = len(operations)
    return build_problem(Graph("", operations, values), Costs("", "", (1.0,) * count, ("",) * count), budget=12)
