"""One registry of strategies. To add one: a file with a function of this signature, and one line here.

A strategy takes a problem and gives back a sequence of problem operations. It may ignore the budget (the paper's baselines do); whether the
result fits is judged afterwards, by the simulator and the verifier, for all of them alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Protocol, cast

from ..errors import InputError
from ..events import Watch
from ..problem import Problem
from ..result import Solution
from ..settings import Settings


class Strategy(Protocol):
    """The first line of its docstring is what `checkmate compare` and the docs say about it."""

    def __call__(self, problem: Problem, settings: Settings, watch: Watch) -> Solution: ...


STRATEGIES: Mapping[str, str] = {
    "keep-all": "keep_all:keep_all",
    "last-node": "last_node:last_node",
    "chen-sqrt": "chen:chen_sqrt",
    "ap-sqrt": "chen:ap_sqrt",
    "linearized-sqrt": "chen:linearized_sqrt",
    "chen-greedy": "chen:chen_greedy",
    "ap-greedy": "chen:ap_greedy",
    "linearized-greedy": "chen:linearized_greedy",
    "griewank": "griewank:griewank",
    "lp-rounding": "lp_rounding:lp_rounding",
    "optimal": "optimal:optimal",
    "auto": "auto:auto",
}
"""Name -> module:function. Imported only when used: some need Pyomo, which takes a second to import."""

HEURISTICS = tuple(name for name in STRATEGIES if name not in ("lp-rounding", "optimal", "auto"))
"""Strategies that need no solver: all are tried for a warm start."""


def get_strategy(name: str) -> Strategy:
    """The strategy of this name, or an error that lists all names."""
    if name not in STRATEGIES:
        raise InputError(f"no strategy {name!r}; there are {', '.join(STRATEGIES)}")
    module, function = STRATEGIES[name].split(":")
    return cast(Strategy, getattr(import_module(f".{module}", __name__), function))
