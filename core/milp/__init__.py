"""The rematerialization MILPs in Pyomo: one registry of formulations. To add one: a file with a builder, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, cast

from ..errors import InputError

if TYPE_CHECKING:
    from .formulation import Formulation

FORMULATIONS: Mapping[str, str] = {
    "liveness": "liveness:build_liveness",
    "paper": "paper:build_paper",
}
"""Name -> module:function. Imported only when used: Pyomo takes a second to import."""


def get_formulation(name: str) -> Formulation:
    """The formulation of this name, or an error that lists all names."""
    if name not in FORMULATIONS:
        raise InputError(f"no formulation {name!r}; there are {', '.join(FORMULATIONS)}")
    module, function = FORMULATIONS[name].split(":")
    return cast("Formulation", getattr(import_module(f".{module}", __name__), function))
