"""Parse option values: sizes, durations, gaps, names, lists. Each error is one line that says what to write instead.

Values may come from a flag, a variable or YAML, so every type takes any value that `str` can convert.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ...core.errors import InputError
from ...core.model.units import Budget, parse_budget, parse_budgets, parse_size
from ...core.spelling import suggestion

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # older versions of click have no type arguments

_DURATION_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ms|min|s|m|h|d|)")
_SECONDS = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def parse_duration(text: str) -> float:
    """Seconds of `60`, `90s`, `5m`, `1h30m`, `500ms`."""
    compact = text.strip().lower().replace(" ", "")
    parts = list(_DURATION_PART.finditer(compact))
    if not parts or "".join(part.group(0) for part in parts) != compact:
        raise InputError(f"not a duration: {text!r}; write 60 (seconds), 90s, 5m or 1h30m")
    seconds = sum(float(part.group(1)) * _SECONDS[part.group(2)] for part in parts)
    if not 0 < seconds < 1e9:
        raise InputError(f"a duration must be above 0 and below 30 years, not {text!r}")
    return seconds


def parse_gap(text: str) -> float:
    """A fraction: `0.01%` and `1e-4` are the same."""
    stripped = text.strip()
    percent = stripped.endswith("%")
    try:
        gap = float(stripped.rstrip("%")) / (100 if percent else 1)
    except ValueError:
        gap = math.nan
    if math.isnan(gap):
        raise InputError(f"not a gap: {text!r}; write 0.01% or 1e-4")
    if not 0 <= gap < 1:
        hint = f"; did you mean {stripped}%?" if not percent and 1 <= gap < 100 else ""
        raise InputError(f"a gap must be at least 0 and below 1 (100%), not {text!r}{hint}")
    return gap


def parse_dimension(text: str) -> tuple[str, int]:
    """`batch=32`."""
    name, equals, size = text.partition("=")
    if not equals or not name.strip() or not re.fullmatch(r"\s*0*[1-9][0-9]{0,17}\s*", size):
        raise InputError(f"not a dimension: {text!r}; write NAME=N with N at least 1, such as batch=32")
    return name.strip(), int(size)


def parse_free_dimension(text: str) -> tuple[str, int | None]:
    """`seq=128` sets the size of a dimension; `batch` alone names the one to vary."""
    if "=" in text:
        return parse_dimension(text)
    if not text.strip():
        raise InputError("not a dimension: write NAME for the one to vary, or NAME=N to set the size of another")
    return text.strip(), None


def split_dimensions(given: tuple[tuple[str, int | None], ...]) -> tuple[dict[str, int], str | None]:
    """The dimensions whose sizes are set, and the one to vary."""
    settled: dict[str, int] = {}
    vary: str | None = None
    for name, size in given:
        if size is None:
            if vary not in (None, name):
                raise InputError(f"--dim {vary} and --dim {name}: only one dimension can vary; set the size of the other with {name}=N")
            vary = name
        elif settled.setdefault(name, size) != size:
            raise InputError(f"--dim sets {name!r} twice, to {settled[name]} and to {size}; leave out one")
    if vary in settled:
        raise InputError(f"--dim {vary} varies this dimension, but --dim {vary}={settled[vary]} sets its size; leave out one")
    return settled, vary


def whole_number(least: int) -> Callable[[str], int]:
    """A parser of whole numbers from `least` to the largest 32-bit integer, the limit of the solvers."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"\s*[0-9]{1,10}\s*", text) or not least <= int(text) < 2**31:
            raise InputError(f"expected a whole number from {least} to {2**31 - 1}, not {text!r:.40}")
        return int(text)

    return parse


class Parsed(ParamType):
    """A value that a function parses from text."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self.parse(str(value))
        except InputError as error:
            self.fail(str(error), param, ctx)


class Name(ParamType):
    """One of a few names; the error for a misspelt one has a suggestion."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name = name
        self.known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value).strip()
        if text not in self.known:
            hint = suggestion(text, self.known) or f"; choose from {', '.join(self.known)}"
            self.fail(f"no {self.name.lower()} {text!r}{hint}", param, ctx)
        return text

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(known) for known in self.known if known.startswith(incomplete)]


class CommaSeparated(ParamType):
    """`a,b,c`, each of one type, none twice."""

    takes_lists = True
    """In YAML it may also be a list."""

    def __init__(self, item: ParamType) -> None:
        self.name = f"{item.name},..."
        self.item = item

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Any, ...]:
        texts = [text.strip() for text in str(value).split(",")]
        if not all(texts):
            self.fail(f"an empty entry in {value!r}; separate entries by commas", param, ctx)
        return tuple(self.item.convert(text, param, ctx) for text in dict.fromkeys(texts))

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        done, comma, last = incomplete.rpartition(",")
        return [CompletionItem(done + comma + str(item.value)) for item in self.item.shell_complete(ctx, param, last)]


class Budgets(CommaSeparated):
    """Budgets and ranges of budgets, `30%:100%:5%,16GB`."""

    def __init__(self) -> None:
        super().__init__(Parsed("BUDGET", parse_budgets))
        self.name = "BUDGETS"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[Budget, ...]:
        if isinstance(value, tuple):
            return value
        found: tuple[list[Budget], ...] = super().convert(value, param, ctx)
        return tuple({budget.text: budget for group in found for budget in group}.values())


BUDGET = Parsed("BUDGET", parse_budget)
SIZE = Parsed("SIZE", parse_size)
DURATION = Parsed("DURATION", parse_duration)
GAP = Parsed("GAP", parse_gap)
COUNT = Parsed("N", whole_number(1))
SEED = Parsed("N", whole_number(0))
DIMENSION = Parsed("NAME=N", parse_dimension)
FREE_DIMENSION = Parsed("NAME[=N]", parse_free_dimension)
