"""`--fail-if 'gap > 1%'`: a comparison that counts a schedule as failed."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...api.result import Result
from ...core.errors import InputError
from ...core.model.units import parse_budget
from ...core.spelling import suggestion
from .values import Parsed, parse_duration, parse_gap

Limit = Callable[[Result], float]
"""A limit may depend on the result: a percentage of the keep-all peak does."""

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_SHAPE = re.compile(r"\s*([A-Za-z_]+)\s*(>=|<=|>|<)\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """A result that meets it counts as failed."""

    text: str
    figure: str
    comparison: str
    limit: Limit

    def met(self, result: Result) -> bool:
        return _COMPARISONS[self.comparison](_FIGURES[self.figure].of(result), self.limit(result))


@dataclass(frozen=True, slots=True)
class _Figure:
    of: Callable[[Result], float]
    limit: Callable[[str], Limit]


def parse_condition(text: str) -> Condition:
    """`gap > 1%`, `peak > 8GB`, `overhead >= 0.3`, `cost > 12.5`, `seconds > 5m`."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise InputError(f"not a condition: {text[:60]!r}; write FIGURE > AMOUNT (or >=, <, <=), such as 'gap > 1%' or 'peak > 8GB'")
    figure, comparison, amount = match.groups()
    if figure not in _FIGURES:
        raise InputError(f"no figure {figure[:40]!r}{suggestion(figure, list(_FIGURES)) or '; figures are ' + ', '.join(_FIGURES)}")
    return Condition(f"{figure} {comparison} {amount}", figure, comparison, _FIGURES[figure].limit(amount))


def _fixed(parse: Callable[[str], float]) -> Callable[[str], Limit]:
    def limit(text: str) -> Limit:
        amount = parse(text)
        return lambda result: amount

    return limit


def _memory(text: str) -> Limit:
    budget = parse_budget(text)
    return lambda result: budget.resolve(result.keep_all_peak_bytes)


def _share(text: str) -> float:
    return _number(text.removesuffix("%")) / 100 if text.endswith("%") else _number(text)


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"not a number: {text[:40]!r}")
    return number


_FIGURES: Mapping[str, _Figure] = {
    "gap": _Figure(lambda result: result.gap, _fixed(parse_gap)),
    "peak": _Figure(lambda result: result.peak_bytes, _memory),
    "cost": _Figure(lambda result: result.cost, _fixed(_number)),
    "overhead": _Figure(lambda result: result.overhead, _fixed(_share)),
    "seconds": _Figure(lambda result: result.seconds, _fixed(parse_duration)),
}

CONDITION = Parsed("CONDITION", parse_condition)
