"""Checkmate: rematerialization schedules that fit a memory budget.

    import checkmate

    result = checkmate.solve(checkmate.load("model.onnx"), budget="8GB")
    result.save("model.schedule.json")

docs/api.md describes all public names with examples. Names that are not in `__all__` may change in any version.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # without `typing`, which takes longer to import than all of this
    from typing import Any

    from .api.graph import LoadedGraph as LoadedGraph
    from .api.graph import load as load
    from .api.largest import MaxBatch as MaxBatch
    from .api.largest import max_batch as max_batch
    from .api.pricing import PricedGraph as PricedGraph
    from .api.profiling import profile as profile
    from .api.result import Result as Result
    from .api.schedule_file import Schedule as Schedule
    from .api.smallest import MinBudget as MinBudget
    from .api.smallest import min_budget as min_budget
    from .api.solving import solve as solve
    from .api.training import differentiate as differentiate
    from .api.verifying import Judgement as Judgement
    from .api.verifying import verify as verify
    from .core.errors import CheckmateError as CheckmateError
    from .core.errors import InfeasibleError as InfeasibleError
    from .core.errors import InputError as InputError
    from .core.errors import InterruptedWorkError as InterruptedWorkError
    from .core.errors import LimitError as LimitError
    from .core.errors import UnavailableError as UnavailableError
    from .core.errors import VerificationError as VerificationError
    from .core.events import Event as Event
    from .core.model.memory_model import MemoryModel as MemoryModel
    from .core.result import Scope as Scope
    from .core.result import Status as Status
    from .core.result import Stop as Stop
    from .core.settings import Order as Order
    from .io.onnxruntime.session import session as session

__version__ = "0.1.0"

_PLACES = {
    "load": ".api.graph",
    "differentiate": ".api.training",
    "solve": ".api.solving",
    "min_budget": ".api.smallest",
    "max_batch": ".api.largest",
    "profile": ".api.profiling",
    "verify": ".api.verifying",
    "session": ".io.onnxruntime.session",
    "LoadedGraph": ".api.graph",
    "PricedGraph": ".api.pricing",
    "Result": ".api.result",
    "Schedule": ".api.schedule_file",
    "MinBudget": ".api.smallest",
    "MaxBatch": ".api.largest",
    "Judgement": ".api.verifying",
    "Status": ".core.result",
    "Stop": ".core.result",
    "Scope": ".core.result",
    "Order": ".core.settings",
    "MemoryModel": ".core.model.memory_model",
    "Event": ".core.events",
    "CheckmateError": ".core.errors",
    "InputError": ".core.errors",
    "InfeasibleError": ".core.errors",
    "LimitError": ".core.errors",
    "UnavailableError": ".core.errors",
    "VerificationError": ".core.errors",
    "InterruptedWorkError": ".core.errors",
}
"""The module of each public name. It is imported when the name is first used, so that `import checkmate` is fast."""

__all__ = ["__version__", "torch", *_PLACES]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name == "torch":
        return import_module(".torch", __name__)
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(_PLACES[name], __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
