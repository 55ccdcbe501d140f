"""Format amounts for people: costs with their unit, shares as percentages, times, names that are safe to print."""

from __future__ import annotations


def format_cost(amount: float, unit: str) -> str:
    """A cost with its unit; costs without a unit stay bare numbers."""
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
    """A duration, with as many digits as are useful."""
    return f"{seconds:.2f} s" if seconds < 120 else format_seconds(seconds)


def format_share(share: float) -> str:
    """`1.97 %`."""
    return f"{100 * share:.2f} %"


def format_change(share: float) -> str:
    """`+1.97 %`: a relative difference; one that rounds to zero has no minus sign."""
    return f"{round(100 * share, 2) + 0.0:+.2f} %"


def source_name(source: str) -> str:
    """A file name as the user wrote it; `-` is standard input."""
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
