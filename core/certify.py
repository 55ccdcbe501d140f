"""Run a strategy and prove what came out: expand, simulate, verify. Nothing leaves here unproved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from .errors import VerificationError
from .events import Event, Watch
from .problem import Problem
from .result import Solution, Status, Stop
from .schedule import Schedule, expand
from .settings import Settings
from .simulate import Simulation, simulate
from .strategies import get_strategy
from .verify import Claim, verify


@dataclass(frozen=True, slots=True)
class Certified:
    """A strategy's outcome with its proof. Without a sequence there is neither schedule nor simulation."""

    strategy: str
    solution: Solution
    schedule: Schedule | None
    simulation: Simulation | None
    fits: bool
    seconds: float


def run_strategy(problem: Problem, strategy: str, settings: Settings, watch: Watch) -> Certified:
    """Run one strategy by name and certify its schedule, whether or not it fits the budget."""
    if problem.count and (strategy == "auto" or settings.order == "search"):
        from .search.warm import warm_up_before  # imports numba, which takes a while

        warm_up_before(watch)
    if settings.iterations is not None:
        watch = replace(watch, undivided=True)
    begun = watch.elapsed
    run = get_strategy(strategy)
    if not problem.count:
        solution = Solution(Status.OPTIMAL, Stop.FINISHED, (), 0.0, bound_scope="any")
    elif settings.order == "search":
        from .strategies.ordering import under_searched_order  # imports numba, which takes a while

        solution = under_searched_order(problem, run, settings, watch)
    else:
        solution = run(problem, settings, watch)
    solution = replace(solution, unfinished=None)
    seconds = watch.elapsed - begun
    if solution.sequence is None:
        return Certified(strategy, solution, None, None, False, seconds)
    schedule, simulation = certify(problem, solution.sequence, watch.on_event)
    return Certified(strategy, solution, schedule, simulation, simulation.peak_bytes <= problem.budget, seconds)


def certify(
    problem: Problem, sequence: tuple[int, ...], on_event: Callable[[Event], None] = lambda event: None
) -> tuple[Schedule, Simulation]:
    """Expand and simulate a sequence; the independent verifier must agree on every number."""
    clock = Watch()
    schedule = expand(problem, sequence)
    reserve = problem.base - problem.graph.fixed_bytes
    simulation = simulate(problem.graph, problem.costs, schedule, reserve=reserve, runtime=problem.runtime)
    on_event(Event("", message=f"simulated in {clock.elapsed:.3f} s"))
    clock.restart()
    claim = Claim(peak_bytes=simulation.peak_bytes, cost=simulation.cost)
    if simulation.peak_bytes <= problem.budget:
        claim = Claim(problem.budget, simulation.peak_bytes, simulation.cost)
    verdict = verify(problem.graph, problem.costs.amounts, schedule, claim, reserve=reserve, runtime=problem.runtime)
    on_event(Event("", message=f"verified in {clock.elapsed:.3f} s"))
    if not verdict.passed:
        raise VerificationError(
            f"the schedule failed verification: {verdict.violations[0]}; this is a bug in checkmate, nothing was written"
        )
    return schedule, simulation
