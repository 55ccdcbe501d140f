"""The exit codes of the command. Documented in docs/cli.md; scripts rely on them."""

from __future__ import annotations

from enum import IntEnum

from ..core.errors import (
    CheckmateError,
    InfeasibleError,
    InputError,
    InterruptedWorkError,
    LimitError,
    UnavailableError,
    VerificationError,
)


class ExitCode(IntEnum):
    OK = 0
    """Success; every schedule that was written was verified."""
    BUG = 1
    """A bug in checkmate."""
    INPUT = 2
    """A bad option, graph or config."""
    INFEASIBLE = 3
    """Proven: no schedule fits the budget."""
    LIMIT = 4
    """A limit was reached before a schedule that fits was found."""
    UNAVAILABLE = 5
    """A solver or runtime is missing or unlicensed."""
    VERIFICATION = 6
    """A schedule or a compiled model failed verification."""
    WORSE = 7
    """A schedule is worse than allowed: it meets a condition of --fail-if, or is worse than its baseline."""
    DIFFERENT = 7
    """Two schedules differ, with --exit-code."""
    INTERRUPTED = 130
    """Ctrl-C; the best schedule so far is written if there is one."""
    BROKEN_PIPE = 141
    """The program that reads the output closed the pipe, as `head` does."""


_MEANINGS: dict[type[CheckmateError], tuple[ExitCode, str]] = {
    InputError: (ExitCode.INPUT, "error"),
    InfeasibleError: (ExitCode.INFEASIBLE, "infeasible"),
    LimitError: (ExitCode.LIMIT, "unknown"),
    UnavailableError: (ExitCode.UNAVAILABLE, "unavailable"),
    VerificationError: (ExitCode.VERIFICATION, "invalid"),
    InterruptedWorkError: (ExitCode.INTERRUPTED, "interrupted"),
}


def meaning_of(error: CheckmateError) -> tuple[ExitCode, str]:
    """The exit code of an error and its `status` under `--json`."""
    for kind in type(error).__mro__:
        if kind in _MEANINGS:
            return _MEANINGS[kind]
    return ExitCode.BUG, "bug"
