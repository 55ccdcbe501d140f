"""What a solver is to us: a matrix in, our own status out. Each back end's words are mapped in its own file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..events import Event, Watch
from ..milp.standard_form import StandardForm
from ..result import Status, Stop
from ..settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class SolverResult:
    """What the solver holds, and why it stopped."""

    status: Status
    stop: Stop
    values: NDArray[np.float64] | None = None
    """The best solution, one number per column; whole where the column is integer up to the solver's tolerance."""
    bound: float = -np.inf
    """No solution has an objective below this."""


Progress = Callable[[float | None, float | None], None]
"""Called with the objective of the best solution and the bound, either of which may not be known yet."""


def without_columns(form: StandardForm) -> SolverResult:
    """The answer to a model in which nothing is left to decide; the back ends disagree on such models."""
    return SolverResult(Status.OPTIMAL, Stop.FINISHED, np.zeros(0), form.offset)


def failure(solver: str, reason: str) -> Event:
    """A solver failed. Others may still find a schedule, so it is no error yet, but the user must hear of it."""
    return Event("", message=f"the solver {solver} failed: {reason}", warning=True)


def ignore(*_: object) -> None:
    """The listener of those who do not listen."""


class Solver(Protocol):
    """A MILP and LP solver driven with a matrix."""

    name: str

    def require(self) -> None:
        """Raise UnavailableError, with what to install, if it cannot be used here."""

    def version(self) -> str: ...

    def solve(
        self,
        form: StandardForm,
        settings: Settings,
        watch: Watch,
        start: Mapping[int, float] | None = None,
        on_progress: Progress = ignore,
    ) -> SolverResult:
        """Minimise. `start` gives some columns of a known solution. Never raises for infeasible, limits or interruption."""
