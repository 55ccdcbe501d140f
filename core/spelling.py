"""Suggestions for misspelt words."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word nearest to a misspelt one, ignoring case; None if none is near."""
    spelled = {candidate.lower(): candidate for candidate in known}
    near = get_close_matches(word.lower(), list(spelled), n=1, cutoff=0.6)
    return spelled[near[0]] if near else None


def suggestion(word: str, known: Sequence[str]) -> str:
    """`; did you mean 'x'?` for the end of a message, or an empty string if no word is near."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""
