"""Parse and format sizes and budgets: `8GB`, `8GiB`, `8e9`, `80%`, `30%:100%:5%`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from ..errors import InputError
from .graph import LARGEST_BYTES

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{prefix}B": 1000**power for power, prefix in enumerate("KMGTP", start=1)}
_UNITS |= {f"{prefix}IB": 1024**power for power, prefix in enumerate("KMGTP", start=1)}
_UNITS |= {prefix: 1000**power for power, prefix in enumerate("KMGTP", start=1)}
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*%")
_SIZE = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+)\s*([A-Za-z]*)\s*")
MOST_BUDGETS = 1000
"""The most budgets in one range; more are surely a mistake."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A number of bytes, or a percentage of the keep-all peak."""

    text: str
    bytes: int | None = None
    share: Fraction | None = None
    """Exact, so that a percentage of a peak is not off by a byte."""

    def resolve(self, keep_all_peak: int) -> int:
        """The budget in bytes."""
        if self.bytes is not None:
            return self.bytes
        assert self.share is not None
        return int(self.share * keep_all_peak)


def parse_size(text: str) -> int:
    """`8GB` is 8 * 10^9, `8GiB` is 8 * 2^30, a bare number is bytes."""
    match = _SIZE.fullmatch(text)
    unit = match.group(2).upper() if match else ""
    if match is None or unit not in _UNITS:
        raise InputError(f"not a size: {text[:40]!r}; write 8GB, 8GiB, 512MB or a number of bytes such as 8e9")
    size = Decimal(match.group(1).replace("_", "")) * _UNITS[unit]
    if size > LARGEST_BYTES:
        raise InputError(f"size {text[:40]!r} is larger than any memory; write for example 8GB")
    return int(size)


def parse_budget(text: str) -> Budget:
    """A size, or a percentage of the keep-all peak."""
    stripped = text.strip()
    if stripped.endswith("%"):
        match = _PERCENT.fullmatch(stripped)
        share = Fraction(match.group(1)) / 100 if match else Fraction(0)
        if not share:
            raise InputError(f"not a budget: {text[:40]!r}; a percentage must be above 0, such as 80%")
        return Budget(stripped, share=share)
    size = parse_size(stripped)
    if size == 0:
        raise InputError("a budget of 0 bytes fits nothing; write for example 8GB, 8GiB or 80%")
    return Budget(stripped, bytes=size)


def parse_budgets(text: str) -> list[Budget]:
    """One budget, or a range of budgets including both ends, `30%:100%:5%` or `8GB:16GB:2GB`."""
    if ":" not in text:
        return [parse_budget(text)]
    ends = [parse_budget(part) for part in text.split(":")]
    if len(ends) != 3:
        raise InputError(f"not a range of budgets: {text[:40]!r}; write first:last:step, such as 30%:100%:5%")
    if len({budget.share is None for budget in ends}) > 1:
        raise InputError(f"the range {text[:40]!r} mixes bytes and percentages; use one kind, such as 30%:100%:5%")
    first, last, step = (budget.bytes if budget.share is None else budget.share for budget in ends)
    assert first is not None
    assert last is not None
    assert step is not None
    count = int((last - first) / Fraction(step)) + 1
    if last < first or count > MOST_BUDGETS:
        why = "ends before it begins" if last < first else f"has {count} budgets, more than {MOST_BUDGETS}"
        raise InputError(f"the range {text[:40]!r} {why}; write first:last:step, such as 30%:100%:5%")
    return [_budget_of(first + number * step) for number in range(count)]


def _budget_of(amount: int | Fraction) -> Budget:
    """The text of a budget, which can be parsed again without loss: percentages are decimals, and so are their sums."""
    if isinstance(amount, int):
        return Budget(str(amount), bytes=amount)
    percent = amount * 100
    return Budget(f"{(Decimal(percent.numerator) / percent.denominator).normalize():f}%", share=amount)


def format_bytes(size: int) -> str:
    """Decimal units with four digits: `13.15 GB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(amount) < 999.5 or unit == "TB":
            return f"{size} B" if unit == "B" else f"{amount:.4g} {unit}"
        amount /= 1000
    raise AssertionError


def exact_bytes(size: int) -> str:
    """Rounded and exact: `13.15 GB (13151234567 bytes)`."""
    return f"{format_bytes(size)} ({size} bytes)" if size >= 1000 else count(size, "byte")


def count(amount: int, noun: str) -> str:
    """`1 operation`, `12 operations`."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"
