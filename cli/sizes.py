"""The size that `max-batch` varies, and what a schedule may cost at each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from ..core.errors import InputError
from ..core.largest import Trial
from ..core.problem import Problem
from ..core.units import Budget
from .options import GraphRequest
from .pipeline import Prepared, prepare
from .training import TrainingRequest

ONE_FORWARD = "one-forward"


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more than the ideal a schedule may cost: a share of it, or one more forward pass as in the paper."""

    text: str
    share: float | None = None

    def most(self, problem: Problem) -> float:
        if self.share is not None:
            return problem.ideal_cost * (1 + self.share)
        if not any(problem.backward):
            raise InputError(
                f"--overhead {ONE_FORWARD}: this graph has no backward pass, so its forward pass cannot be told; "
                "add --loss cross-entropy, or give --overhead a share such as 30%"
            )
        return problem.ideal_cost + sum(cost for cost, backward in zip(problem.cost, problem.backward, strict=True) if not backward)


def parse_allowance(text: str) -> Allowance:
    """`one-forward`, `30%` or `0.3`."""
    stripped = text.strip()
    if stripped == ONE_FORWARD:
        return Allowance(stripped)
    try:
        share = float(stripped.rstrip("%")) / (100 if stripped.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1e6:
        raise InputError(f"not an overhead: {text!r}; write {ONE_FORWARD}, or a share of the ideal cost such as 30%")
    return Allowance(stripped, share)


@dataclass(frozen=True, slots=True)
class SizedModel:
    """A model whose size can be chosen: a dimension by its name, or the first free one."""

    request: GraphRequest
    training: TrainingRequest | None
    seed: int
    name: str | None
    """The dimension to vary; None for the first free one."""

    @property
    def label(self) -> str:
        """What the user calls the dimension."""
        if self.name is not None:
            return self.name
        from ..io.onnx.free_dimensions import free_dimensions

        free = [name for name in free_dimensions(Path(self.request.source)) if name not in self.request.dims]
        return free[0] if free and free[0] else "batch"

    def check(self) -> None:
        """What cannot be varied at all is said in terms of what the user asked for, not of the sizes tried."""
        from ..io.content import Content
        from ..io.load import is_onnx
        from ..io.onnx.free_dimensions import require_free_dimension

        source = self.request.source
        if source == "-":
            raise InputError("max-batch reads the model once for each size: give a file, not standard input")
        if not is_onnx(Content.from_path(Path(source))):
            raise InputError(f"{source}: a graph of fixed sizes has no batch size to vary; give an ONNX model with a free dimension")
        if self.training is None:
            require_free_dimension(Path(source))

    def at(self, size: int) -> Prepared:
        """Exactly what `solve` makes of the model with this size."""
        if self.name is None:
            request = replace(self.request, batch_size=size)
        else:
            request = replace(self.request, dims={**self.request.dims, self.name: size})
        return prepare(request, self.training, self.seed)

    def trial(self, size: int, budget: Budget, allowance: Allowance) -> Trial:
        problem = self.at(size).at(budget)
        return Trial(size, problem, allowance.most(problem))


def split_dimensions(given: tuple[tuple[str, int | None], ...]) -> tuple[dict[str, int], str | None]:
    """The dimensions that are settled, and the one to vary."""
    settled: dict[str, int] = {}
    vary: str | None = None
    for name, size in given:
        if size is None:
            if vary not in (None, name):
                raise InputError(f"--dim {vary} and --dim {name}: only one dimension can be varied; settle the other with {name}=N")
            vary = name
        elif settled.setdefault(name, size) != size:
            raise InputError(f"--dim gives {name!r} twice: {settled[name]} and {size}")
    if vary in settled:
        raise InputError(f"--dim {vary} is to be varied, and --dim {vary}={settled[vary]} settles it; leave out one")
    return settled, vary
