"""`python -m checkmate` and the `checkmate` command."""

from .cli.main import run

__all__ = ["run"]

if __name__ == "__main__":
    run()
