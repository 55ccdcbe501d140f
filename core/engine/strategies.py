"""One registry of strategies. To add one: a file with a function of this signature, and one line here (or in `baselines`)."""

from __future__ import annotations

from collections.abc import Mapping

from ..baselines import BASELINES, get_baseline
from ..errors import InputError
from ..lookup import imported
from ..strategy import Strategy

_SOLVING: Mapping[str, str] = {
    "lp-rounding": "..rounding.lp_rounding:lp_rounding",
    "optimal": ".optimal:optimal",
    "auto": ".auto:auto",
}
"""Strategies that use a solver: name -> place."""

STRATEGIES = (*BASELINES, *_SOLVING)


def get_strategy(name: str) -> Strategy:
    """The strategy of this name, or an error that lists all names."""
    if name in BASELINES:
        return get_baseline(name)
    if name not in _SOLVING:
        raise InputError(f"no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    strategy: Strategy = imported(_SOLVING[name], __package__ or "")
    return strategy
