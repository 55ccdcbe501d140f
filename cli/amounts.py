"""Amounts as people read them: costs in their unit, shares as percentages, times, names that cannot harm a terminal."""

from __future__ import annotations

from ..core.units import format_bytes


def format_cost(amount: float, unit: str) -> str:
    """A cost with its unit; costs a file states without a unit stay bare numbers."""
    if unit == "s":
        return format_seconds(amount)
    if unit == "FLOP":
        return _scaled(amount, (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15)), "FLOP")
    number = f"{amount:,.0f}" if abs(amount) < 1e9 and amount == int(amount) else f"{amount:,.6g}"
    return number if unit in ("", "given") else f"{number} {unit}"


def format_seconds(seconds: float) -> str:
    """`350 us`, `12.3 ms`, `4.56 s`, `2 min 05 s`."""
    if seconds >= 120:
        minutes, rest = divmod(round(seconds), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s"
    return _scaled(seconds, (("n", 1e-9), ("u", 1e-6), ("m", 1e-3), ("", 1.0)), "s")


def format_elapsed(seconds: float) -> str:
    """The time something took, with as many digits as matter to someone who waited."""
    return f"{seconds:.2f} s" if seconds < 120 else format_seconds(seconds)


def format_share(share: float) -> str:
    """`1.97 %`."""
    return f"{100 * share:.2f} %"


def format_change(share: float) -> str:
    """`+1.97 %`, for what is above or below something; what rounds to nothing is not below."""
    return f"{round(100 * share, 2) + 0.0:+.2f} %"


def exact_bytes(size: int) -> str:
    """`13.15 GB (13151234567 bytes)`: to read, and to paste."""
    return f"{format_bytes(size)} ({size} bytes)" if size >= 1000 else count(size, "byte")


def count(amount: int, noun: str) -> str:
    """`1 operation`, `12 operations`."""
    return f"{amount} {noun}" if amount == 1 else f"{amount} {noun}s"


def source_name(source: str) -> str:
    """A file as the user named it; `-` is standard input."""
    return "stdin" if source == "-" else shown(source)


def shown(name: str) -> str:
    """A name from a file, without characters that would move the cursor or break the line."""
    return "".join(character if character.isprintable() else "?" for character in name)


def _scaled(amount: float, scale: tuple[tuple[str, float], ...], unit: str) -> str:
    if amount == 0:
        return f"0 {unit}"
    prefix, size = scale[0]
    for candidate, factor in scale[1:]:
        if abs(amount) < 0.9995 * factor:
            break
        prefix, size = candidate, factor
    return f"{amount / size:.4g} {prefix}{unit}"
