"""The rematerialization MILPs in Pyomo: one registry of formulations. To add one: a file with a builder, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..lookup import imported
from ..settings import FormulationName

if TYPE_CHECKING:
    from .formulation import Formulation

FORMULATIONS: Mapping[FormulationName, str] = {
    FormulationName.LIVENESS: ".liveness:build_liveness",
    FormulationName.PAPER: ".paper:build_paper",
    FormulationName.ANY_ORDER: ".any_order_model:build_any_order",
}
"""Name -> place. Imported only when used: Pyomo takes a second to import."""


def get_formulation(name: FormulationName) -> Formulation:
    """The builder of a formulation."""
    builder: Formulation = imported(FORMULATIONS[name], __name__)
    return builder
