"""Everything that can go wrong for a reason a user can understand.

    CheckmateError
      InputError            a bad option, graph or config             exit 2
      InfeasibleError       proven: no schedule fits the budget       exit 3
      LimitError            a limit was reached without a schedule    exit 4
      UnavailableError      solver or runtime missing or unlicensed   exit 5
      VerificationError     a schedule failed the independent check   exit 6

The message is the one line the user reads: what is wrong, where, and what to do. Exit codes live in `cli/exit_codes.py`.
"""


class CheckmateError(Exception):
    """Root of all errors with a message meant for the user."""


class InputError(CheckmateError):
    """A bad option, graph or config."""


class InfeasibleError(CheckmateError):
    """Proven: no schedule fits the budget."""


class LimitError(CheckmateError):
    """A limit was reached before any schedule was found; says nothing about whether one exists."""


class UnavailableError(CheckmateError):
    """A solver or runtime is missing or unlicensed."""


class VerificationError(CheckmateError):
    """A schedule did not pass the independent verifier."""
