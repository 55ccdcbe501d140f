"""The options of `checkmate.torch.compile`, and of `torch.compile(..., options=...)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ..api.pricing import as_budget
from ..api.solving import SolvingOptions, solving_options
from ..core.errors import InputError
from ..core.model.units import Budget, parse_size
from ..core.spelling import suggestion

EXACT, INDUCTOR = "exact", "inductor"
MEASURED = "measured"
DEFAULT_TIME_LIMIT = 30.0


@dataclass(frozen=True)
class CompileOptions:
    """How to plan the memory of a model."""

    budget: Budget
    reserve: int = 0
    """Bytes to leave free for what is outside the model: optimizer state, other models."""
    time_limit: float = DEFAULT_TIME_LIMIT
    """Seconds for each graph."""
    gap: float | None = None
    strategy: str = "auto"
    seed: int = 0
    threads: int | None = None
    costs: str = MEASURED
    """`measured` on this machine, or a cost model: `roofline`, `flops`, `unit`."""
    device: str | None = None
    """The machine for `roofline`."""
    pin: tuple[str, ...] = ()
    compiler: str = EXACT
    """`exact` runs torch's own kernels in the order of the schedule; `inductor` leaves kernels and order to Inductor."""
    cache: Path | bool | None = True
    """The folder of cached schedules; True for that of the variable CHECKMATE_CACHE or else the user's, False for none."""
    progress: bool | None = None
    """Show progress on stderr; by default on a terminal only."""

    @property
    def solving(self) -> SolvingOptions:
        return solving_options(time_limit=self.time_limit, gap=self.gap, seed=self.seed, threads=self.threads)

    @property
    def key(self) -> dict[str, object]:
        """All that a schedule depends on besides its graph."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("cache", "progress", "compiler")}
        return {**chosen, "budget": self.budget.text, "pin": list(self.pin)}


def parse_options(given: Mapping[str, Any] | None) -> CompileOptions:
    """Check options as users write them."""
    stated = dict(given or {})
    known = [field.name for field in fields(CompileOptions)]
    for name in stated:
        if name not in known:
            raise InputError(f"checkmate: no option {name!r}{suggestion(name, known) or '; options are ' + ', '.join(known)}")
    if stated.get("budget") is None:
        raise InputError('checkmate: no budget; write options={"budget": "8GB"}, or a share of the keep-all peak such as "80%"')
    stated["budget"] = as_budget(stated["budget"])
    stated["reserve"] = parse_size(str(stated.get("reserve") or 0))
    pins = stated.get("pin", ())
    stated["pin"] = (pins,) if isinstance(pins, str) else tuple(pins)
    if stated.get("compiler", EXACT) not in (EXACT, INDUCTOR):
        raise InputError(f"checkmate: no compiler {stated['compiler']!r}; choose from {EXACT}, {INDUCTOR}")
    if not float(stated.get("time_limit", DEFAULT_TIME_LIMIT)) > 0:
        raise InputError(f"checkmate: time_limit must be above 0 seconds, not {stated['time_limit']!r}")
    if isinstance(stated.get("cache"), str):
        stated["cache"] = Path(stated["cache"])
    options = CompileOptions(**stated)
    _ = options.solving
    return options
