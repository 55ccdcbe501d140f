"""What to do next if the budget is too small: the same command with a budget that is known to work, to be pasted into a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.errors import CheckmateError, InfeasibleError

if TYPE_CHECKING:
    from ..api.counting import Counting
    from ..api.solving import SolvingOptions
    from .output.progress import Progress

MOST_SECONDS = 3.0
"""How long a budget that works is looked for: the search for the smallest finds its first in a second, and most of what it saves in
three."""


@contextmanager
def finding_a_budget(counting: Counting, solving: SolvingOptions, progress: Progress) -> Iterator[None]:
    """If the budget is proven too small, find one that works."""
    try:
        yield
    except InfeasibleError as error:
        if error.works_at_bytes is None:
            from ..api.smallest import find_min_budget

            progress.begin("looking for a budget that works")
            quick = replace(solving, time_limit=min(solving.time_limit, MOST_SECONDS))
            error.works_at_bytes = counting.taken(find_min_budget(counting.priced, quick).result.core)
        raise


def next_step(error: BaseException, arguments: Sequence[str]) -> str:
    """To be appended to the message of an error."""
    works_at = error.works_at_bytes if isinstance(error, CheckmateError) else None
    if works_at is None:
        return ""
    command = list(arguments)
    for place, argument in enumerate(arguments):
        if argument == "--budget" and place + 1 < len(arguments):
            command[place + 1] = str(works_at)
        elif argument.startswith("--budget="):
            command[place] = f"--budget={works_at}"
        else:
            continue
        return f"; this works: {shlex.join(['checkmate', *command])}"
    return f"; --budget {works_at} works"
