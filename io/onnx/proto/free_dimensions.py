"""The free dimensions of a model."""

from __future__ import annotations

from pathlib import Path

from ....core.errors import InputError
from .dimensions import described
from .model_file import load_model
from .stored import free_inputs
from .tensor_types import dimensions_of, is_settled

NAMELESS = ""


def free_dimensions(path: Path) -> list[str]:
    """The names of the free dimensions of a model's inputs, in the order in which they occur; empty for those without a name."""
    inputs = free_inputs(load_model(path, str(path)).graph)
    found = (dimension for value in inputs for dimension in dimensions_of(value.type) if dimension.dim_param or not is_settled(dimension))
    return list(dict.fromkeys(dimension.dim_param or NAMELESS for dimension in found))


def require_free_dimension(path: Path) -> None:
    """Raise an error if the model has no free dimension."""
    if free_dimensions(path):
        return
    inputs = free_inputs(load_model(path, str(path)).graph)
    shapes = ", ".join(f"{value.name}: {described(value.type)}" for value in inputs[:3]) or "there are none"
    raise InputError(f"{path}: no input has a free dimension to vary ({shapes}); export the model with a free batch dimension")
