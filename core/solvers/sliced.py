"""An integer program that is solved in slices of work, so that others have their turn between them.

HiGHS pauses after an amount of work that is the same on every machine, and keeps what it knows until it is told to go on. The other solvers
cannot: for them a slice is the whole program, up to a number of nodes. All answers are checked (`checked.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..events import Watch
from ..milp.standard_form import StandardForm
from ..params import PARAMS
from ..result import Status, Stop
from ..settings import Settings
from . import get_solver
from .base import SolverResult, failure
from .checked import found_lie
from .highs import Asked, as_result, mip_options
from .linear_program import solve_linear


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """What a slice of work gave."""

    status: Status
    """UNKNOWN or FEASIBLE while there is more to do, and where the solver gave up."""
    is_over: bool
    """Is there nothing more to do?"""
    bound: float
    """No solution has an objective below this."""
    found: tuple[NDArray[np.float64], ...]
    """New solutions, the best last."""


class SlicedProgram(Protocol):
    """A program that is being solved."""

    def advance(self, watch: Watch) -> Slice:
        """One more slice of work."""

    def close(self) -> None:
        """Drop what is left of the work."""


def looks_per_slice(form: StandardForm) -> int:
    """How often HiGHS looks whether to stop in a slice; each time takes the longer the more variables there are."""
    return max(1, min(PARAMS.slice_looks, int(PARAMS.slice_work / (PARAMS.look_work * max(1, form.columns)))))


def sliced(form: StandardForm, settings: Settings, start: Mapping[int, float] | None) -> SlicedProgram:
    """Where there are too many variables, they may be fractions."""
    if form.columns > PARAMS.integer_columns:
        return _Relaxed(form)
    if settings.solver == "highs" and form.columns:
        return _Pausing(form, settings, start, looks_per_slice(form))
    return _Whole(form, settings, start)


class _Pausing:
    def __init__(self, form: StandardForm, settings: Settings, start: Mapping[int, float] | None, looks: int) -> None:
        get_solver("highs")  # raises an error that says what to install
        self._form, self._settings, self._start, self._looks = form, settings, start, looks
        self._asked: Asked | None = None
        self._told = 0

    def advance(self, watch: Watch) -> Slice:
        if self._asked is None:
            self._asked = Asked(self._form, mip_options(self._settings), self._start, self._looks)
        answer = self._asked.wait(watch)
        found = tuple(self._asked.found[self._told :])
        self._told = len(self._asked.found)
        if answer is None:
            partial = SolverResult(Status.FEASIBLE if self._told else Status.UNKNOWN, Stop.FINISHED, None, self._asked.bound, found)
            return self._checked(partial, watch, is_over=False)
        return self._checked(replace(as_result(self._form, answer), found=found), watch, is_over=True)

    def _checked(self, result: SolverResult, watch: Watch, *, is_over: bool) -> Slice:
        solutions = [*result.found, *([] if result.values is None else [result.values])]
        for values in solutions:
            lie = found_lie(self._form, replace(result, status=Status.FEASIBLE, values=values))
            if lie:
                watch.on_event(failure("HiGHS", f"{lie}; its answer is ignored"))
                self.close()
                return Slice(Status.UNKNOWN, True, -np.inf, ())
        return Slice(result.status, is_over, result.bound, tuple(solutions))

    def close(self) -> None:
        if self._asked is not None:
            self._asked.close()


class _Relaxed:
    """Only its linear relaxation, where whole numbers take too long: its solution has fractions, which have to be rounded."""

    def __init__(self, form: StandardForm) -> None:
        self._form = form

    def advance(self, watch: Watch) -> Slice:
        solved = solve_linear(self._form.relaxed(), watch)
        if solved.values is None:
            return Slice(Status.INFEASIBLE if solved.bound == np.inf else Status.UNKNOWN, True, solved.bound, ())
        return Slice(Status.OPTIMAL, True, solved.bound, (solved.values,))

    def close(self) -> None:
        """Nothing is left after a slice."""


class _Whole:
    def __init__(self, form: StandardForm, settings: Settings, start: Mapping[int, float] | None) -> None:
        self._form, self._start = form, start
        self._settings = replace(settings, nodes=settings.nodes or PARAMS.slice_nodes)

    def advance(self, watch: Watch) -> Slice:
        result = get_solver(self._settings.solver).solve(self._form, self._settings, watch, self._start)
        solutions = (*result.found, *([] if result.values is None else [result.values]))
        return Slice(result.status, True, result.bound, solutions)

    def close(self) -> None:
        """Nothing is left after a slice."""
