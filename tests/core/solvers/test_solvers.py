"""One conformance suite for every solver in the registry."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from chains import unit_chain
from random_graphs import random_problem

from checkmate.core.errors import InputError, UnavailableError
from checkmate.core.events import Watch
from checkmate.core.milp import get_formulation
from checkmate.core.milp.formulation import Formulated
from checkmate.core.milp.sparse import SparseMatrix
from checkmate.core.result import Status, Stop
from checkmate.core.schedule.sequence import profile
from checkmate.core.settings import Settings
from checkmate.core.solvers import SOLVERS, get_solver
from checkmate.core.solvers.cbc import parse_progress

EXACT = Settings(gap=1e-6)


def chain(layers: int, budget: int) -> Formulated:
    return get_formulation("liveness")(unit_chain(layers, budget))


@pytest.mark.parametrize("name", SOLVERS)
class TestEverySolver:
    def test_solves_to_the_known_optimum(self, name: str) -> None:
        formulated = chain(8, 4)
        result = get_solver(name).solve(formulated.form, EXACT, Watch(120))
        assert (result.status, result.stop) == (Status.OPTIMAL, Stop.FINISHED)
        assert result.values is not None
        assert len(formulated.sequence(result.values)) == 26
        assert result.bound == pytest.approx(26)

    def test_proves_infeasibility(self, name: str) -> None:
        result = get_solver(name).solve(chain(6, 2).form, EXACT, Watch(60))
        assert (result.status, result.stop) == (Status.INFEASIBLE, Stop.FINISHED)
        assert result.values is None

    def test_a_time_limit_without_a_solution_is_not_infeasible(self, name: str) -> None:
        hard = (chain(10, 4) if name == "gurobi" else chain(30, 5)).form
        result = get_solver(name).solve(hard, EXACT, Watch(0.0))
        assert result.status in (Status.UNKNOWN, Status.FEASIBLE)
        assert result.stop is Stop.TIME_LIMIT

    @pytest.mark.slow
    def test_takes_a_start(self, name: str) -> None:
        """With next to no time, what comes back is at least as good as what was put in."""
        formulated = chain(10, 4)
        solved = get_solver("highs").solve(formulated.form, Settings(gap=0.05), Watch(120))
        assert solved.values is not None
        sequence = formulated.sequence(solved.values)
        result = get_solver(name).solve(formulated.form, EXACT, Watch(0.5), formulated.start(sequence))
        assert result.status in (Status.FEASIBLE, Status.OPTIMAL)
        assert result.values is not None
        assert len(formulated.sequence(result.values)) <= len(sequence)

    @pytest.mark.slow
    def test_an_interruption_keeps_the_best_so_far(self, name: str) -> None:
        formulated = chain(10, 4)
        first = get_solver("highs").solve(formulated.form, Settings(gap=0.2), Watch(120))
        assert first.values is not None
        start = formulated.start(formulated.sequence(first.values))
        told: list[tuple[float | None, float | None]] = []
        watch = Watch(60, interrupted=lambda: watch.elapsed > 0.7)
        result = get_solver(name).solve(formulated.form, Settings(gap=0.0), watch, start, lambda *pair: told.append(pair))
        if result.stop is Stop.INTERRUPTED:
            assert result.status is Status.FEASIBLE
        else:
            assert result.status is Status.OPTIMAL
        assert result.values is not None
        assert watch.elapsed < 30

    def test_solves_the_relaxation(self, name: str) -> None:
        formulated = chain(6, 4)
        result = get_solver(name).solve(formulated.form.relaxed(), EXACT, Watch(60))
        assert result.status is Status.OPTIMAL
        expected = get_solver("highs").solve(formulated.form.relaxed(), EXACT, Watch(60))
        assert result.bound == pytest.approx(expected.bound, rel=1e-6)
        whole = get_solver("highs").solve(formulated.form, EXACT, Watch(60))
        assert expected.bound < whole.bound - 0.1

    def test_agrees_with_the_others_on_random_graphs(self, name: str) -> None:
        compared = 0
        for seed in range(3000, 3040):
            problem = random_problem(seed)
            if problem.count < 4 or problem.available < max(problem.size, default=0):
                continue
            formulated = get_formulation("paper")(problem)
            mine = get_solver(name).solve(formulated.form, EXACT, Watch(60))
            theirs = get_solver("highs").solve(formulated.form, EXACT, Watch(60))
            assert mine.status is theirs.status, seed
            if mine.values is not None and theirs.values is not None:
                costs = [profile(problem, formulated.sequence(values)).cost for values in (mine.values, theirs.values)]
                assert costs[0] == pytest.approx(costs[1]), seed
                compared += 1
        assert compared > 5

    def test_progress_tells_costs_and_bounds_in_order(self, name: str) -> None:
        formulated = chain(9, 4)
        told: list[tuple[float | None, float | None]] = []
        result = get_solver(name).solve(formulated.form, EXACT, Watch(120), on_progress=lambda *pair: told.append(pair))
        assert result.values is not None
        costs = [cost for cost, _ in told if cost is not None]
        assert costs
        assert min(costs) == pytest.approx(len(formulated.sequence(result.values)), rel=1e-6)
        assert all(bound <= result.bound + 1e-6 for _, bound in told if bound is not None)

    def test_a_model_without_columns_is_solved(self, name: str) -> None:
        form = chain(1, 9).form
        empty = type(form)(
            np.zeros(0),
            7.0,
            SparseMatrix.of(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), (0, 0)),
            *[np.zeros(0)] * 4,
            np.zeros(0, dtype=np.bool_),
            {},
        )
        assert get_solver(name).solve(empty, EXACT, Watch(5)).bound == 7.0

    def test_says_its_version(self, name: str) -> None:
        assert any(character.isdigit() for character in get_solver(name).version())


@pytest.mark.parametrize(
    ("line", "incumbent", "bound"),
    [
        ("Cbc0010I After 100 nodes, 53 on tree, 14 best solution, best possible 11.361896 (2.1 seconds)", 14.0, 11.361896),
        ("Cbc0010I After 0 nodes, 1 on tree, 1e+50 best solution, best possible 8 (0.3 seconds)", None, 8.0),
        ("Cbc0012I Integer solution of 14 found by feasibility pump after 0 iterations and 0 nodes (0.93 seconds)", 14.0, None),
        ("         0        1      0              14                          10.9648   21.68%      3.55", 14.0, 10.9648),
        (" ★       7        4      3              14 b&b solution             10.967   21.66%      4.26", 14.0, 10.967),
        ("✔ Root node heuristics — best 14 in 0.906s", 14.0, None),
        ("     1     1198        0    112      21.95                8     1.10", None, None),
    ],
)
def test_both_dialects_of_cbcs_log_are_read(line: str, incumbent: float | None, bound: float | None) -> None:
    """Lines as printed by release 2.10.8 and by the development build of the wheel cbcbox 2.935."""
    assert parse_progress(line) == (incumbent, bound)


def test_an_unknown_solver_is_an_input_error() -> None:
    with pytest.raises(InputError, match="choose from highs, cbc, gurobi"):
        get_solver("cplex")


def test_a_model_beyond_gurobis_free_licence_says_so() -> None:
    """Also proves that the conformance tests above really ran Gurobi with that licence."""
    with pytest.raises(UnavailableError, match="use --solver highs"):
        get_solver("gurobi").solve(chain(24, 8).form, EXACT, Watch(10))


def test_importing_the_registry_loads_no_solver() -> None:
    code = "import sys, checkmate.core.solvers; print([m for m in ('highspy', 'gurobipy', 'cbcbox', 'pyomo') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
