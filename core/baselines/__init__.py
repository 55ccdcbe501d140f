"""The registry of the paper's baselines (section 5.1): heuristics without a solver. To add one: a file with a strategy, one line here."""

from __future__ import annotations

from collections.abc import Mapping

from ..lookup import imported
from ..strategy import Strategy

BASELINES: Mapping[str, str] = {
    "keep-all": ".keep_all:keep_all",
    "last-node": ".last_node:last_node",
    "chen-sqrt": ".chen:chen_sqrt",
    "ap-sqrt": ".chen:ap_sqrt",
    "linearized-sqrt": ".chen:linearized_sqrt",
    "chen-greedy": ".chen:chen_greedy",
    "ap-greedy": ".chen:ap_greedy",
    "linearized-greedy": ".chen:linearized_greedy",
    "griewank": ".griewank:griewank",
}
"""Name -> place."""


def get_baseline(name: str) -> Strategy:
    strategy: Strategy = imported(BASELINES[name], __name__)
    return strategy
