"""Sizes and budgets as people write them: `8GB`, `8GiB`, `8e9`, `80%`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from .errors import InputError
from .graph import LARGEST_BYTES

_UNITS = {"": 1, "B": 1}
_UNITS |= {f"{prefix}B": 1000**power for power, prefix in enumerate("KMGTP", start=1)}
_UNITS |= {f"{prefix}IB": 1024**power for power, prefix in enumerate("KMGTP", start=1)}
_UNITS |= {prefix: 1000**power for power, prefix in enumerate("KMGTP", start=1)}
_PERCENT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})\s*%")
_SIZE = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+)\s*([A-Za-z]*)\s*")


@dataclass(frozen=True, slots=True)
class Budget:
    """Absolute bytes, or a share of the peak of keeping everything."""

    text: str
    bytes: int | None = None
    share: Fraction | None = None
    """Exact: a percentage of a peak must not lose a byte to floating point."""

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
        raise InputError(f"size {text[:40]!r} is larger than any memory")
    return int(size)


def parse_budget(text: str) -> Budget:
    """A size, or a percentage of the peak of keeping everything."""
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


def format_bytes(size: int) -> str:
    """Decimal units with four digits, as budgets are written: `13.15 GB`."""
    amount = float(size)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(amount) < 999.5 or unit == "TB":
            return f"{size} B" if unit == "B" else f"{amount:.4g} {unit}"
        amount /= 1000
    raise AssertionError
