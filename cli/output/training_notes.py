"""What to say about a training graph: how the file differs from its module, and parameters without a gradient. One line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.model.units import count
from .amounts import shown

if TYPE_CHECKING:
    from ...io.onnx.differentiate.training_files import Differentiated

_MOST_NAMED = 3


def training_notes(made: Differentiated | None) -> list[str]:
    """Nothing for a graph that was not made by `differentiate`."""
    if made is None:
        return []
    notes = [f"warning: {shown(warning)}" for warning in made.graph.warnings]
    without = made.graph.without_gradient
    if without:
        parts = [_part([name for name in without if without[name] == reason], reason) for reason in dict.fromkeys(without.values())]
        notes.append(f"note: {count(len(without), 'parameter')} without a gradient: {'; '.join(parts)}")
    return notes


def _part(names: list[str], reason: str) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{shown(', '.join(names[:_MOST_NAMED]))}{more} ({reason})"
