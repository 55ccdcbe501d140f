"""Compiled helpers that several kernels share: random numbers.

numba's cache does not notice a change here: after one, remove `__pycache__`.
"""

from __future__ import annotations

from .compile import inner
from .tables import Row


@inner
def draw(totals: Row) -> int:
    """xorshift64*, 64 random bits: the same numbers on every machine. Kept in the column `random`."""
    x = totals.random
    x ^= (x >> 12) & 0xFFFFFFFFFFFFF
    x ^= x << 25
    x ^= (x >> 27) & 0x1FFFFFFFFF
    totals.random = x
    return x * 2685821657736338717


@inner
def pick(totals: Row) -> int:
    """A random number, to be divided by the number of choices."""
    return (draw(totals) >> 33) & 0x7FFFFFFF


@inner
def uniform(totals: Row) -> float:
    """A random number from 0 to 1."""
    return ((draw(totals) >> 11) & 0x1FFFFFFFFFFFFF) / 9007199254740992.0


@inner
def scale(totals: Row, limit: int) -> int:
    """A number from 1 to about `limit`, small ones more likely than large ones."""
    bits = 1
    while limit >> bits:
        bits += 1
    first = pick(totals) % bits
    second = pick(totals) % bits
    return 1 + pick(totals) % (1 << (first if first < second else second))
