"""Checkmate: rematerialization schedules that fit a memory budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .io.runtime.session import session as session

__version__ = "0.1.0"
__all__ = ["__version__", "session"]


def __getattr__(name: str) -> Any:
    """What needs more than this file is loaded when it is first asked for: importing checkmate costs nothing."""
    if name == "session":
        from .io.runtime.session import session

        return session
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
