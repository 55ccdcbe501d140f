"""Walks side by side: kernels run without the interpreter's lock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

WALKERS = 2
"""How many at a time. What is walked never depends on it, nor on the machine; how much of it before time is up does."""


def walkers(threads: int | None) -> ThreadPoolExecutor:
    """As many as are worth while, unless fewer threads were asked for."""
    return ThreadPoolExecutor(min(WALKERS, threads or WALKERS))
