"""Compiling the kernels, before any clock runs.

Their compiled form is cached on disk, so this takes seconds once on a machine and nothing later.
"""

from __future__ import annotations

from ..costs import Costs
from ..events import Event, Watch
from ..graph import Graph, Operation, Value
from ..problem import Problem, build_problem
from .order import find_order, order_for_budget
from .views import search_views


def warm_up_before(watch: Watch) -> None:
    """Every way into the search begins here: importing and compiling are no part of the work, and take nothing from its time."""
    watch.on_event(Event("loading the search (compiled on first use)"))
    warm_up()
    watch.restart()


def warm_up() -> None:
    """Run every kernel once, on a problem so small that only compiling takes time."""
    problem = _two_branches()
    start = tuple(range(problem.count))
    search_views(problem, [start], 0, 1, Watch())
    find_order(problem, 0, 10, Watch())
    order_for_budget(problem, 0, 10, Watch())


def _two_branches() -> Problem:
    """Two branches side by side, which take less memory one after the other: there is something to find in it."""
    inputs = ((), (), (0,), (1,), (2, 3))
    operations = tuple(Operation(str(number), "", read, (number,)) for number, read in enumerate(inputs))
    values = tuple(Value(str(number), size) for number, size in enumerate((10, 10, 1, 1, 1)))
    count = len(operations)
    return build_problem(Graph("", operations, values), Costs("", "", (1.0,) * count, ("",) * count), budget=12)
