"""`--cache DIR`: where results are kept, and where they are kept if nobody says."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from .command import option
from .options import GENERAL


def default_cache_folder() -> Path:
    """Where the platform keeps what can be computed again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "checkmate"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "checkmate" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "checkmate"


cache_option = option(
    "--cache",
    "cache_folder",
    group=GENERAL,
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where results are kept.  [default: the user's cache folder]",
)


def cache_folder_of(given: str | None) -> Path:
    return default_cache_folder() if given is None else Path(given)
