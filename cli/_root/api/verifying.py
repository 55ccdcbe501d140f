"""Verify a schedule with the independent verifier, or a compiled model by running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.events import stage
from ..core.model.costs import given_costs, has_given_costs, unit_costs
from ..core.model.graph import Graph
from ..core.model.memory_model import MemoryModel
from ..core.model.units import Budget
from ..core.schedule.verify import Claim, Verdict
from ..core.schedule.verify import verify as judge
from .graph import LoadedGraph, load
from .pricing import as_budget, as_memory_model, keep_all_peak, price_operations
from .result import Result
from .schedule_file import Schedule, read_content
from .training import is_torch_source

if TYPE_CHECKING:
    from ..io.formats.schedule_json import ScheduleDocument
    from ..io.onnx.read.reader import OnnxModel
    from ..io.onnxruntime.verification import Verification, VerifyOptions


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of verifying a schedule."""

    graph: Graph
    document: ScheduleDocument
    budget_bytes: int
    """The budget it was checked against."""
    verdict: Verdict
    """Peak and cost as the verifier computed them."""
    violations: tuple[str, ...]
    unchecked: tuple[str, ...] = ()
    """What the schedule claims and the verifier cannot check."""

    @property
    def passed(self) -> bool:
        return not self.violations


def verify(
    graph: LoadedGraph | Any,
    schedule: Schedule | Result | str | PathLike[str],
    *,
    budget: str | int | None = None,
    costs: Any = None,
    device: str | None = None,
    reserve: int | None = None,
    memory_model: MemoryModel | str | None = None,
) -> Judgement:
    """Check a schedule against a graph: every input is in memory when it is read, every operation runs, every output is in memory at the
    end, and peak, cost and budget are as the schedule says. A bad schedule raises no error: see `passed` and `violations`."""
    loaded = graph if isinstance(graph, LoadedGraph) else load(graph, session_threads=_noted_threads(schedule))
    if isinstance(schedule, Result):
        schedule = schedule.schedule
    model = None if memory_model is None else as_memory_model(memory_model)
    limit = None if budget is None else as_budget(budget)
    return judge_schedule(loaded.graph, schedule, limit, costs=costs, device=device, reserve=reserve, memory_model=model)


def _noted_threads(schedule: Schedule | Result | str | PathLike[str]) -> int | None:
    if isinstance(schedule, Result):
        return schedule.priced.loaded.session_threads
    if isinstance(schedule, Schedule):
        return None if schedule.document.session is None else schedule.document.session.threads
    return solved_threads(str(schedule))


def solved_threads(schedule: str) -> int | None:
    """The threads of the session that the schedule in this file was solved for; None if the file does not say."""
    from ..io.formats.content import Content
    from ..io.formats.schedule_json import parse_session
    from ..io.formats.strict_json import Fields

    if schedule == "-" or not Path(schedule).is_file():
        return None
    content = Content.from_path(Path(schedule))
    if not content.is_json or not isinstance(content.document, dict):
        return None
    note = parse_session(Fields(content.document, content.where))
    return None if note is None else note.threads


def judge_schedule(
    graph: Graph,
    schedule: Schedule | str | PathLike[str],
    budget: Budget | None = None,
    *,
    costs: Any = None,
    device: str | None = None,
    reserve: int | None = None,
    memory_model: MemoryModel | None = None,
) -> Judgement:
    """Verify a schedule of this graph. Costs are those in the file unless `costs` or `device` is given."""
    from ..io.formats.schedule_json import contradictions, parse_schedule, render_schedule

    amounts: tuple[float, ...] | None = None
    if costs is not None or device is not None:
        graph, priced = price_operations(graph, costs, device)
        amounts = priced.amounts
    with stage("read the schedule"):
        if isinstance(schedule, Schedule):
            stated: object = render_schedule(schedule.document, schedule.graph)
            document = parse_schedule(stated, graph)
        else:
            content = read_content(schedule)
            stated, document = content.document, parse_schedule(content.document, graph, content.where)
    held_back = document.reserve_bytes if reserve is None else reserve
    model = document.memory_model if memory_model is None else memory_model
    with stage("simulate without recomputation"):
        everything = keep_all_peak(graph, held_back, model)
    limit = document.budget_bytes if budget is None else budget.resolve(everything)
    claim = Claim(limit, document.peak_bytes, document.cost)
    with stage("verify"):
        verdict = judge(graph, amounts or _amounts_of(graph, document), document.schedule, claim, reserve=held_back, memory_model=model)
        wrong = [*verdict.violations, *contradictions(stated, document, graph)]
    if document.keep_all_peak_bytes != everything:
        wrong.append(f"the keep-all peak is {everything} bytes, but {document.keep_all_peak_bytes} was claimed")
    if document.bound is not None and document.bound > document.cost * (1 + 1e-9):
        wrong.append(f"the bound {document.bound!r} is above the cost {document.cost!r}, which is impossible")
    return Judgement(graph, document, limit, verdict, tuple(wrong), _unchecked(graph, document, amounts is not None))


def _unchecked(graph: Graph, document: ScheduleDocument, priced_here: bool) -> tuple[str, ...]:
    """A bound is a proof by a solver. Only one that is no higher than the ideal cost needs none: every operation runs at least once."""
    claims = []
    if document.bound is not None and document.bound > document.ideal_cost * (1 + 1e-9):
        claims.append(
            f"the bound {document.bound:.6g} and the status {document.status.value!r}: that no schedule is cheaper is a solver's proof; "
            "solve repeats it"
        )
    if not priced_here and _amounts_of(graph, document) is document.amounts:
        claims.append("the costs of the operations: they are those in the schedule file; --costs checks them")
    return tuple(claims)


def _amounts_of(graph: Graph, document: ScheduleDocument) -> tuple[float, ...]:
    """Costs in the graph file are taken from there, not from the schedule file that is verified."""
    if document.cost_model == "given" and has_given_costs(graph):
        return given_costs(graph).amounts
    if document.cost_model == "unit":
        return unit_costs(graph).amounts
    return document.amounts


def is_model(path: str) -> bool:
    """True if the content is an ONNX model or a PyTorch program."""
    from ..io.formats.content import Content
    from ..io.load import is_onnx, is_torch

    if path == "-" or not Path(path).is_file():
        return False
    content = Content.from_path(Path(path))
    return is_onnx(content) or is_torch(content)


def verify_compiled(
    original: LoadedGraph,
    compiled: str | PathLike[str],
    *,
    dims: Mapping[str, int] | None = None,
    batch_size: int | None = None,
    options: VerifyOptions | None = None,
    on_task: Callable[[str], None] = lambda task: None,
) -> Verification:
    """Run a compiled model and the original, each in its own process; compare outputs, order, memory, budget and time."""
    from ..io.onnx.read.reader import read_onnx
    from ..io.onnxruntime.verification import VerifyOptions, verify_models

    if original.torch is not None:
        from ..io.torch.files.program_verification import verify_programs

        if not is_torch_source(str(compiled)):
            raise InputError(f"{compiled}: not a PyTorch program; compare a program with the one that was compiled from it")
        return verify_programs(original.torch, Path(compiled), options or VerifyOptions(), on_task)
    if original.onnx is None:
        raise InputError(f"{original.source}: not a model; compare a compiled model with the model it was made from")
    model = read_onnx(Path(compiled), dims=dict(dims or {}), batch_size=batch_size)
    return verify_models(_on_disk(original), model, options or VerifyOptions(), on_task)


def _on_disk(loaded: LoadedGraph) -> OnnxModel:
    """The ONNX model of a graph that was loaded from one."""
    assert loaded.onnx is not None
    return loaded.onnx
