"""All errors with a message for the user.

    CheckmateError
      InputError            a bad option, graph or config             exit 2
      InfeasibleError       proven: no schedule fits the budget       exit 3
      LimitError            a limit was reached before a schedule     exit 4
      UnavailableError      solver or runtime missing or unlicensed   exit 5
      VerificationError     a schedule failed verification            exit 6
      InterruptedWorkError  Ctrl-C before there was a schedule        exit 130

The message is the one line the user reads: what is wrong, where, and what to do next. Exit codes are defined in `cli/exit_codes.py`.
"""


class CheckmateError(Exception):
    """Base class of all errors with a message for the user."""

    works_at_bytes: int | None = None
    """A budget that is known to work, if the budget was too small."""


class InputError(CheckmateError):
    """A bad option, graph or config."""


class InfeasibleError(CheckmateError):
    """Proven: no schedule fits the budget. Has the smallest budget that could work, and the operation that needs it."""

    def __init__(
        self,
        message: str,
        budget_bytes: int | None = None,
        smallest_budget_bytes: int | None = None,
        binding_operation: str = "",
        binding_reason: str = "",
    ) -> None:
        super().__init__(message)
        self.budget_bytes = budget_bytes
        self.smallest_budget_bytes = smallest_budget_bytes
        self.binding_operation = binding_operation or None
        self.binding_reason = binding_reason

    @property
    def details(self) -> dict[str, int | str | None]:
        """Its fields, for `--json`."""
        if self.budget_bytes is None:
            return {}
        names = ("budget_bytes", "smallest_budget_bytes", "works_at_bytes", "binding_operation", "binding_reason")
        return {name: getattr(self, name) for name in names}


class InterruptedWorkError(CheckmateError):
    """Ctrl-C, or a true `interrupted()`, before a schedule was found."""


class LimitError(CheckmateError):
    """A limit was reached before a schedule that fits was found. One may exist."""

    def __init__(self, message: str, works_at_bytes: int | None = None) -> None:
        super().__init__(message)
        self.works_at_bytes = works_at_bytes

    @property
    def details(self) -> dict[str, int]:
        """Its fields, for `--json`."""
        return {} if self.works_at_bytes is None else {"works_at_bytes": self.works_at_bytes}


class UnavailableError(CheckmateError):
    """A solver or runtime is missing or unlicensed."""


class VerificationError(CheckmateError):
    """A schedule did not pass the independent verifier."""
