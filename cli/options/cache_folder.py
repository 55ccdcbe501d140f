"""`--cache DIR`: the folder of cached results, and its default."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from .command import option
from .shared import GENERAL


def default_cache_folder() -> Path:
    """The cache folder of the platform."""
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
    help="The folder of cached results.  [default: the user's cache folder]",
)


def cache_folder_of(given: str | None) -> Path:
    return default_cache_folder() if given is None else Path(given)
