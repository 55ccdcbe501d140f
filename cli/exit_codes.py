"""What the exit status of the command says. Documented in docs/cli.md; scripts rely on it."""

from __future__ import annotations

from enum import IntEnum

from ..core.errors import CheckmateError, InfeasibleError, InputError, LimitError, UnavailableError, VerificationError


class ExitCode(IntEnum):
    OK = 0
    """Done; a schedule that was written was verified."""
    BUG = 1
    """Something checkmate should have handled."""
    INPUT = 2
    """A bad option, graph or config."""
    INFEASIBLE = 3
    """Proven: no schedule fits the budget."""
    LIMIT = 4
    """A limit was reached without a schedule that fits."""
    UNAVAILABLE = 5
    """A solver or runtime is missing or unlicensed."""
    VERIFICATION = 6
    """A schedule failed the independent check."""
    WORSE = 7
    """Worse than it may be: a condition of --fail-if is met, or a schedule regressed."""
    DIFFERENT = 7
    """Two schedules differ, where the user asked to be told by the exit code."""
    INTERRUPTED = 130
    """Ctrl-C; the best schedule so far is written if there is one."""
    BROKEN_PIPE = 141
    """The reader of our output went away, as `head` does."""


class InterruptedWorkError(CheckmateError):
    """Ctrl-C came before there was anything to write."""


_MEANINGS: dict[type[CheckmateError], tuple[ExitCode, str]] = {
    InputError: (ExitCode.INPUT, "error"),
    InfeasibleError: (ExitCode.INFEASIBLE, "infeasible"),
    LimitError: (ExitCode.LIMIT, "unknown"),
    UnavailableError: (ExitCode.UNAVAILABLE, "unavailable"),
    VerificationError: (ExitCode.VERIFICATION, "invalid"),
    InterruptedWorkError: (ExitCode.INTERRUPTED, "interrupted"),
}


def meaning_of(error: CheckmateError) -> tuple[ExitCode, str]:
    """The exit code of an error and the word for it under `--json`."""
    for kind in type(error).__mro__:
        if kind in _MEANINGS:
            return _MEANINGS[kind]
    return ExitCode.BUG, "bug"
