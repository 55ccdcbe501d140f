"""Train a PyTorch model within a memory budget.

    import checkmate.torch

    model = checkmate.torch.compile(model, budget="8GB")
    loss = model(x, y); loss.backward(); optimizer.step()
    print(checkmate.torch.plans(model))

`torch.compile(model, backend="checkmate", options={"budget": "8GB"})` does the same. docs/torch.md describes all of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .backend import compile as compile
    from .backend import plans as plans
    from .largest import MaxBatch as MaxBatch
    from .largest import max_batch as max_batch
    from .plan import Plan as Plan

_PLACES = {"compile": ".backend", "plans": ".backend", "max_batch": ".largest", "MaxBatch": ".largest", "Plan": ".plan"}

__all__ = ["MaxBatch", "Plan", "compile", "max_batch", "plans"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ..io.torch_files import require_torch

    require_torch()
    found = getattr(import_module(_PLACES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
