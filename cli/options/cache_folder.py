"""`--cache DIR`: the folder of cached results, and its default."""

from __future__ import annotations

from pathlib import Path

import click

from .command import option
from .shared import GENERAL

cache_option = option(
    "--cache",
    "cache_folder",
    group=GENERAL,
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="The folder of cached results.  [default: the user's cache folder]",
)


def cache_folder_of(given: str | None) -> Path:
    from ...io.formats.result_cache import default_cache_folder

    return default_cache_folder() if given is None else Path(given)
