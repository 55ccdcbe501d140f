"""The solver protocol: takes a matrix, returns our own status. Each back end maps its status codes in its own file."""

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
    """The solution and bound of a solver, and why it stopped."""

    status: Status
    stop: Stop
    values: NDArray[np.float64] | None = None
    """The best solution, one number per column; integer columns are integer up to the solver's tolerance."""
    bound: float = -np.inf
    """No solution has an objective below this."""
    found: tuple[NDArray[np.float64], ...] = ()
    """All solutions it told of, in the order it found them, where it tells."""


Progress = Callable[[float | None, float | None], None]
"""Called with the objective of the best solution and the bound, either of which may not be known yet."""


def without_columns(form: StandardForm) -> SolverResult:
    """The answer to a model without columns; the back ends treat such models differently."""
    return SolverResult(Status.OPTIMAL, Stop.FINISHED, np.zeros(0), form.offset)


def failure(solver: str, reason: str) -> Event:
    """A warning that a solver failed. It is not an error, because a schedule may still be found without it."""
    return Event("", message=f"the solver {solver} failed: {reason}", warning=True)


def ignore(*_: object) -> None:
    """A listener that does nothing."""


class Solver(Protocol):
    """A MILP and LP solver that takes a matrix."""

    name: str

    def require(self) -> None:
        """Raise UnavailableError, which says what to install, if the solver cannot be used here."""

    def version(self) -> str: ...

    def solve(
        self,
        form: StandardForm,
        settings: Settings,
        watch: Watch,
        start: Mapping[int, float] | None = None,
        on_progress: Progress = ignore,
    ) -> SolverResult:
        """Minimize. `start` has some columns of a known solution. Does not raise for infeasibility, limits or interruption."""
