"""When the work ends: once the gap is met for one order, others get as long again; a longer limit changes nothing."""

from __future__ import annotations

from chains import unit_chain

from checkmate.core.engine.pool import Pool, Report, Snapshot
from checkmate.core.engine.scheduler import OTHER_ORDERS, Scheduler
from checkmate.core.events import Event, Watch
from checkmate.core.model.problem import Problem
from checkmate.core.params import PARAMS
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Order, Settings

WORK = 1.0


class Bounder:
    """Finds a schedule of a chain, raises the bound for its order to its cost after some rounds, and never has a bound for any order."""

    name = "bounder"
    is_search = False

    def __init__(self, problem: Problem, schedule: tuple[int, ...], rounds: int) -> None:
        self._schedule, self._rounds = schedule, rounds
        self._cost = profile(problem, schedule).cost

    def wants(self, snapshot: Snapshot) -> bool:
        return True

    def step(self, snapshot: Snapshot, watch: Watch) -> Report:
        order = tuple(dict.fromkeys(self._schedule))
        bound = self._cost if snapshot.round >= self._rounds else 0.0
        return Report((("", self._schedule),), bound, order, work=WORK)

    def close(self) -> None:
        """Holds nothing."""


def ended_after(rounds: int, events: list[Event]) -> Scheduler:
    problem = unit_chain(3, 4)
    pool = Pool(problem, order_is_free=True)
    schedule = (0, 1, 2, 3, 4, 1, 5, 0, 6)
    settings = Settings(gap=1e-3, order=Order.SEARCH, iterations=500)
    assert profile(problem, schedule).peak <= problem.budget
    scheduler = Scheduler(pool, [Bounder(problem, schedule, rounds)], settings, Watch(on_event=events.append))
    scheduler.run()
    return scheduler


def test_other_orders_get_as_long_as_the_gap_took_and_that_is_said() -> None:
    for rounds in (4, 20):
        events: list[Event] = []
        met = (rounds + 1) * WORK
        assert ended_after(rounds, events).work == 2 * met
        assert [event.message for event in events if event.message] == [OTHER_ORDERS]


def test_a_gap_that_is_met_at_once_leaves_time_for_a_finer_one() -> None:
    assert ended_after(0, []).work == PARAMS.least_work


def test_a_gap_that_is_never_met_ends_with_the_rounds_and_says_nothing() -> None:
    events: list[Event] = []
    assert ended_after(10_000, events).round == 500
    assert not any(event.message for event in events)
