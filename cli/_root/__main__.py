"""`python -m checkmate` and the `checkmate` command."""

import _signal  # type: ignore[import-not-found]  # the built-in part of `signal`, which takes no time to import

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    # Until a command begins, Ctrl-C just ends the process: an exception while modules are imported would print a traceback.
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

from .cli.main import run

__all__ = ["run"]

if __name__ == "__main__":
    run()
