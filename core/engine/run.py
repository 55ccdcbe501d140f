"""Run a strategy by name, and certify what came out."""

from __future__ import annotations

from dataclasses import replace

from ..events import Watch
from ..model.problem import Problem
from ..result import Result, Scope, Status, Stop, certified
from ..schedule.sequence import drop_unread
from ..settings import FormulationName, Order, Settings
from .strategies import get_strategy


def run_strategy(problem: Problem, strategy: str, settings: Settings, watch: Watch) -> Result:
    """Run one strategy by name and certify its schedule, whether or not it fits the budget."""
    searches = settings.order is Order.SEARCH and not _chooses_the_order(strategy, settings)
    if problem.count and searches:
        from ..search.warm import warm_up_before  # imports numba, which takes a while

        warm_up_before(watch)
    if settings.iterations is not None:
        watch = replace(watch, undivided=True)
    begun = watch.elapsed
    run = get_strategy(strategy)
    if not problem.count:
        result = Result(Status.OPTIMAL, Stop.FINISHED, (), 0.0, bound_scope=Scope.ANY)
    elif searches:
        from .searched_order import under_searched_order  # imports numba, which takes a while

        result = under_searched_order(problem, run, settings, watch)
    else:
        result = run(problem, settings, watch)
    if settings.order is Order.SEARCH and result.sequence is not None:
        result = replace(result, sequence=drop_unread(problem, result.sequence))
    result = replace(result, strategy=strategy, seconds=watch.elapsed - begun)
    return certified(result, problem, settings.gap, watch.on_event)


def _chooses_the_order(strategy: str, settings: Settings) -> bool:
    """Does a strategy choose the order of first computations itself?"""
    return strategy == "auto" or (strategy == "optimal" and settings.formulation is FormulationName.ANY_ORDER)
