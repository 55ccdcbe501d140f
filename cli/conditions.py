"""`--fail-if 'gap > 1%'`: what a schedule must not be, said in one comparison."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..core.errors import InputError
from ..core.units import parse_budget
from .outcome import Outcome
from .parameters import Parsed, parse_duration, parse_gap, suggestion

Limit = Callable[[Outcome], float]
"""A limit may depend on the outcome: a share of the peak of keeping everything does."""

_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_SHAPE = re.compile(r"\s*([A-Za-z_]+)\s*(>=|<=|>|<)\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Condition:
    """Met by an outcome that is to count as a failure."""

    text: str
    figure: str
    comparison: str
    limit: Limit

    def met(self, outcome: Outcome) -> bool:
        return _COMPARISONS[self.comparison](_FIGURES[self.figure].of(outcome), self.limit(outcome))


@dataclass(frozen=True, slots=True)
class _Figure:
    of: Callable[[Outcome], float]
    limit: Callable[[str], Limit]


def parse_condition(text: str) -> Condition:
    """`gap > 1%`, `peak > 8GB`, `overhead >= 0.3`, `cost > 12.5`, `seconds > 5m`."""
    match = _SHAPE.fullmatch(text)
    if match is None:
        raise InputError(
            f"not a condition: {text[:60]!r}; write a figure, >, >=, < or <=, and an amount, such as 'gap > 1%' or 'peak > 8GB'"
        )
    figure, comparison, amount = match.groups()
    if figure not in _FIGURES:
        raise InputError(f"no figure {figure[:40]!r}{suggestion(figure, list(_FIGURES)) or '; there are ' + ', '.join(_FIGURES)}")
    return Condition(f"{figure} {comparison} {amount}", figure, comparison, _FIGURES[figure].limit(amount))


def _fixed(parse: Callable[[str], float]) -> Callable[[str], Limit]:
    def limit(text: str) -> Limit:
        amount = parse(text)
        return lambda outcome: amount

    return limit


def _memory(text: str) -> Limit:
    budget = parse_budget(text)
    return lambda outcome: budget.resolve(outcome.keep_all_peak_bytes)


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
    "gap": _Figure(lambda outcome: outcome.gap if outcome.gap is not None else math.inf, _fixed(parse_gap)),
    "peak": _Figure(lambda outcome: outcome.peak_bytes, _memory),
    "cost": _Figure(lambda outcome: outcome.cost, _fixed(_number)),
    "overhead": _Figure(lambda outcome: outcome.overhead, _fixed(_share)),
    "seconds": _Figure(lambda outcome: outcome.seconds, _fixed(parse_duration)),
}

CONDITION = Parsed("CONDITION", parse_condition)
