"""Compiled helpers that several kernels share: random numbers and sorting.

numba's cache does not notice a change here: after one, remove `__pycache__`.
"""

from __future__ import annotations

from .compile import inner
from .tables import Ints, Row

MANY = 12
"""From more numbers than this on, bits sort faster than insertion."""


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


@inner
def sort(numbers: Ints, count: int, bits: Ints) -> None:
    """Sort the first `count` numbers, all different and none below 0; `bits` is scratch space, a 64th of the greatest number and more.

    A few are sorted by insertion, many by setting a bit for each. numpy's sort takes long to compile.
    """
    if count <= MANY:
        for begin in range(1, count):
            number = numbers[begin]
            place = begin
            while place > 0 and numbers[place - 1] > number:
                numbers[place] = numbers[place - 1]
                place -= 1
            numbers[place] = number
        return
    least = numbers[0]
    most = numbers[0]
    for place in range(count):
        number = numbers[place]
        least = number if number < least else least
        most = number if number > most else most
    for word in range(least >> 6, (most >> 6) + 1):
        bits[word] = 0
    for place in range(count):
        bits[numbers[place] >> 6] |= 1 << (numbers[place] & 63)
    place = 0
    for word in range(least >> 6, (most >> 6) + 1):
        number = word << 6
        left = bits[word]
        while left:
            numbers[place] = number
            place += left & 1
            number += 1
            left = (left >> 1) & 0x7FFFFFFFFFFFFFFF
