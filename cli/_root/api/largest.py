"""The largest batch, or other dimension, that fits a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.baselines import BASELINES
from ..core.errors import InputError
from ..core.events import Event, Watch
from ..core.model.problem import Problem
from ..core.model.units import Budget
from ..core.result import Result as CoreResult
from ..core.result import Status, Stop, certified
from .graph import TORCH, LoadedGraph, load
from .pricing import PricedGraph, as_budget
from .result import Result
from .solving import SolvingOptions, solving_options
from .training import differentiate, is_torch_source, torch_dimensions

if TYPE_CHECKING:
    from ..core.studies.largest import Largest, Trial

ONE_FORWARD = "one-forward"
DEFAULT_STRATEGIES = (*BASELINES, "auto")


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much more than the ideal cost a schedule may cost: a share of it, or one more forward pass as in the paper."""

    text: str
    share: float | None = None

    def most(self, problem: Problem) -> float:
        if self.share is not None:
            return problem.ideal_cost * (1 + self.share)
        if not any(problem.backward):
            raise InputError(
                f"--overhead {ONE_FORWARD}: this graph has no backward pass, so the cost of a forward pass is not known; "
                "add --loss cross-entropy, or set --overhead to a share such as 30%"
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


@dataclass(frozen=True)
class SizedModel:
    """A model in which the size of one dimension varies: a named one, or the first free one."""

    source: str
    vary: str | None = None
    """The dimension to vary; None for the first free one."""
    dims: Mapping[str, int] = field(default_factory=dict)
    """Sizes of the others."""
    training: Mapping[str, Any] | None = None
    """Options of `differentiate`, for a forward model."""
    pricing: Mapping[str, Any] = field(default_factory=dict)
    """Options of `LoadedGraph.price`."""
    session_threads: int | None = None

    @property
    def label(self) -> str:
        """The name of the dimension for the user."""
        if self.vary is not None:
            return self.vary
        free = [name for name in self._free_dimensions() if name not in self.dims]
        return free[0] if free and free[0] else "batch"

    def _free_dimensions(self) -> Sequence[str | None]:
        if is_torch_source(self.source):
            return torch_dimensions(self.source)
        from ..io.onnx.proto.free_dimensions import free_dimensions

        return free_dimensions(Path(self.source))

    def check(self) -> None:
        """Check that the dimension can vary, so that the message names what the user asked for and not a size that was tried."""
        from ..io.formats.content import Content
        from ..io.load import is_onnx
        from ..io.onnx.proto.free_dimensions import require_free_dimension

        if self.source == "-":
            raise InputError("max-batch cannot read the model from standard input, because it reads it once for each size; give a file")
        if is_torch_source(self.source):
            if not torch_dimensions(self.source):
                raise InputError(f"{self.source}: its sizes are fixed; export the program with dynamic_shapes to let the batch vary")
            return
        if not is_onnx(Content.from_path(Path(self.source))):
            raise InputError(
                f"{self.source}: a JSON graph has fixed sizes, so its batch size cannot vary; give a model with a free dimension"
            )
        if self.training is None:
            require_free_dimension(Path(self.source))

    def load(self, size: int) -> LoadedGraph:
        batch_size = size if self.vary is None else None
        dims = {**self.dims, **({} if self.vary is None else {self.vary: size})}
        if self.training is not None:
            return differentiate(self.source, dims=dims, batch_size=batch_size, session_threads=self.session_threads, **self.training)
        return load(self.source, dims=dims, batch_size=batch_size, session_threads=self.session_threads)

    def at(self, size: int) -> PricedGraph:
        """The same priced graph that `solve` makes from the model with this size."""
        return self.load(size).price(**self.pricing)

    def trial(self, size: int, budget: Budget, allowance: Allowance) -> Trial:
        from ..core.studies.largest import Trial

        problem = self.at(size).at(budget)
        return Trial(size, problem, allowance.most(problem))


@dataclass(frozen=True)
class MaxBatch:
    """The largest size for each strategy, and the model and the limits it was found for."""

    model: SizedModel
    dimension: str
    budget: Budget
    budget_bytes: int
    allowance: Allowance
    found: tuple[Largest, ...]
    impossible_from: int | None
    """Proven: nothing fits from this size on."""
    sizes_tried: int
    interrupted: bool
    cost_model: str
    cost_unit: str
    name: str
    options: SolvingOptions

    @property
    def format(self) -> str:
        return TORCH if is_torch_source(self.model.source) else "onnx"

    @property
    def best(self) -> Largest | None:
        """The largest; if several are equal, the cheapest."""
        answered = [answer for answer in self.found if answer.result is not None]
        return min(answered, key=lambda answer: (-answer.size, answer.result.cost if answer.result else 0.0), default=None)

    @property
    def size(self) -> int:
        """The largest size that fits; 0 if none does."""
        return self.best.size if self.best else 0

    @property
    def keep_all(self) -> int | None:
        """The largest size without recomputation."""
        return next((answer.size for answer in self.found if answer.strategy == "keep-all" and answer.size), None)

    def result(self) -> Result | None:
        """The schedule of the largest size; None if no size fits."""
        best = self.best
        if best is None or best.result is None:
            return None
        priced = self.model.at(best.size)
        provenance: dict[str, str | int | float] = {"found_by": best.result.found_by, self.dimension: best.size}
        found = CoreResult(
            Status.FEASIBLE, Stop.FINISHED, best.result.sequence, provenance=provenance, strategy=best.strategy, seconds=best.seconds
        )
        gap = self.options.settings_for(best.strategy).gap
        return Result(certified(found, priced.at(self.budget), gap), priced, self.budget, self.options.settings.seed)


def max_batch(
    source: str,
    budget: str | int,
    *,
    dim: str | None = None,
    dims: Mapping[str, int] | None = None,
    overhead: str = ONE_FORWARD,
    strategies: Sequence[str] = DEFAULT_STRATEGIES,
    training: Mapping[str, Any] | None = None,
    costs: Any = None,
    device: str | None = None,
    pin: Sequence[str] = (),
    reserve: int | str = 0,
    time_limit: float = 60.0,
    seed: int = 0,
    on_progress: Callable[[Event], None] | None = None,
    interrupted: Callable[[], bool] | None = None,
) -> MaxBatch:
    """The largest batch of an ONNX model that fits a budget in bytes and costs at most `overhead` more than the ideal.

    `dim` names another dimension to vary. `training` holds the options of `differentiate`, for a forward model.
    """
    pricing = {"costs": costs, "device": device, "pin": tuple(pin), "reserve": reserve}
    model = SizedModel(str(source), dim, dict(dims or {}), training, pricing)
    return find_max_batch(
        model,
        as_budget(budget),
        parse_allowance(overhead),
        strategies,
        solving_options(time_limit=time_limit, seed=seed),
        on_event=on_progress or (lambda event: None),
        interrupted=interrupted or (lambda: False),
    )


def find_max_batch(
    model: SizedModel,
    budget: Budget,
    allowance: Allowance,
    strategies: Sequence[str],
    options: SolvingOptions,
    *,
    on_event: Callable[[Event], None],
    interrupted: Callable[[], bool],
    on_task: Callable[[str], None] = lambda task: None,
    on_unit: Callable[[str], None] = lambda unit: None,
) -> MaxBatch:
    """`max_batch` with parsed options. The time limit applies to each size tried."""
    from ..core.studies.largest import SizeSearch

    if budget.share is not None:
        raise InputError(
            f"--budget {budget.text}: the keep-all peak grows with the size, so a percentage is not possible; write bytes, such as 16GB"
        )
    model.check()

    def watch_for(strategy: str, size: int) -> Watch:
        on_task(f"{strategy}: {model.label} {size}")
        return Watch(options.time_limit, on_event, interrupted)

    search = SizeSearch(lambda size: model.trial(size, budget, allowance), options.settings_for, watch_for)
    first = search.trial(1)
    on_unit(first.problem.costs.unit)
    found: list[Largest] = []
    for strategy in sorted(strategies, key=lambda name: name not in BASELINES):
        if interrupted():
            break
        on_task(strategy)
        found.append(search.find(strategy))
    by_name = {answer.strategy: answer for answer in found}
    return MaxBatch(
        model=model,
        dimension=model.label,
        budget=budget,
        budget_bytes=first.problem.budget,
        allowance=allowance,
        found=tuple(by_name[strategy] for strategy in strategies if strategy in by_name),
        impossible_from=search.impossible_from() if not interrupted() else None,
        sizes_tried=search.sizes_tried,
        interrupted=interrupted(),
        cost_model=first.problem.costs.model,
        cost_unit=first.problem.costs.unit,
        name=first.problem.graph.name,
        options=options,
    )
