"""Verify a compiled model by running it: run both models in their own processes, on the same inputs, and check the results."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from ...core.errors import InputError, UnavailableError
from ...core.model.units import format_bytes
from ..onnx.read.metadata import PROCESS_KEY
from ..onnx.read.reader import OnnxModel
from .checks import Check, Outcome, check_memory, check_order, check_outputs, check_process, check_time, peak_of, rounding
from .child import Failure, Job, Report, run_job
from .counts import Count
from .enforcement import Enforcement
from .inputs import feeds_for, nudged, weights_for
from .nodes import FileNode, file_nodes, origin
from .predict import predict
from .session import load_onnxruntime
from .tensor_files import write_tensors
from .trace import computed_bytes

TIMING_ROUNDS = 3
GROWTH_RUNS = 10
BUDGET_KEY, RESERVE_KEY, OVERHEAD_KEY = "checkmate.budget_bytes", "checkmate.reserve_bytes", "checkmate.overhead"
COUNT_KEY = "checkmate.count"


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to verify."""

    budget: int | None = None
    """In bytes; None: the one in the compiled model."""
    reserve: int | None = None
    enforce: bool = False
    inputs: Path | None = None
    repeat: int = 10
    threads: int | None = None
    seed: int = 0
    amounts: Mapping[str, float] | None = None
    """Costs by operation of the original, to predict the overhead; None: use the prediction in the compiled model."""


@dataclass(frozen=True, slots=True)
class Verification:
    """The results of all checks."""

    version: str
    """Of the runtime."""
    budget: int | None
    checks: tuple[Check, ...]
    runtime: str = "onnxruntime"

    @property
    def passed(self) -> bool:
        return all(check.outcome is not Outcome.FAILED for check in self.checks)


def verify_models(
    original: OnnxModel, compiled: OnnxModel, options: VerifyOptions, on_task: Callable[[str], None] = lambda task: None
) -> Verification:
    """Run both models and compare them. Raises an error only if the original itself cannot be run."""
    load_onnxruntime()
    _require_same_inputs(original, compiled)
    with tempfile.TemporaryDirectory(prefix="checkmate-") as name:
        return _Verifier(original, compiled, options, Path(name), on_task).verify()


class _Verifier:
    def __init__(
        self, original: OnnxModel, compiled: OnnxModel, options: VerifyOptions, folder: Path, on_task: Callable[[str], None]
    ) -> None:
        self._original, self._compiled, self._options = original, compiled, options
        self._folder = folder
        self._on_task = on_task
        self._nodes = file_nodes(compiled.proto)
        self._prediction = predict(compiled)
        self._notes = {entry.key: entry.value for entry in compiled.proto.metadata_props}
        self._feeds = feeds_for(original, options.inputs, seed=options.seed)
        weights = weights_for(original, seed=options.seed + 1)
        self._job = Job(
            model="",
            inputs=write_tensors(self._feeds, folder, "input"),
            weights=write_tensors(weights, folder, "weight"),
            threads=options.threads or compiled.threads,
            warm_up=1,
        )
        self._budget = options.budget if options.budget is not None else _whole(self._notes.get(BUDGET_KEY))
        self._reserve = options.reserve if options.reserve is not None else _whole(self._notes.get(RESERVE_KEY)) or 0

    def verify(self) -> Verification:
        original = self._observe(self._original, "running the original")
        if original.failure is not None:
            raise _cannot_run(self._original, original)
        compiled = self._observe(self._compiled, "running the compiled model")
        if compiled.failure is not None:
            summary = f"the compiled model fails: {compiled.failure.value}: {compiled.message}"
            return Verification(original.version, self._budget, (Check("outputs", Outcome.FAILED, summary),))
        plain = self._run(self._compiled, "a plain session", exact=False, keep_outputs=True)
        random = [operation.name for operation in self._original.graph.operations if operation.pinned and _draws(operation.kind)]
        checks = [
            check_outputs(original, compiled, plain, random, self._nudged),
            check_order(self._nodes, compiled, {operation.name: 1 for operation in self._original.graph.operations}),
            check_memory(self._nodes, self._prediction, compiled),
            self._check_budget(compiled),
            check_process(
                self._run(self._compiled, "the memory of the process", growth=GROWTH_RUNS),
                _whole(self._notes.get(PROCESS_KEY)),
                self._budget if self._notes.get(COUNT_KEY) == Count.PROCESS.value else None,
                self._reserve,
            ),
        ]
        if self._options.enforce:
            checks.append(self._enforce(original))
        checks.append(check_time(*self._timed(), self._predicted_overhead(), original.threads))
        return Verification(original.version, self._budget, tuple(checks))

    def _nudged(self) -> Report:
        """The original with every input changed in its last bit."""
        inputs = write_tensors(nudged(self._feeds), self._folder, "nudged")
        return self._run(self._original, "inputs changed in their last bits", inputs=inputs, keep_outputs=True)

    def _timed(self) -> tuple[list[float], list[float]]:
        """Run both models alternately, so that a machine that becomes slower or faster affects both."""
        times: tuple[list[float], list[float]] = ([], [])
        runs = ceil(self._options.repeat / TIMING_ROUNDS)
        for number in range(min(TIMING_ROUNDS, self._options.repeat)):
            for model, found in zip((self._original, self._compiled), times, strict=True):
                report = self._run(model, f"timing, round {number + 1}", timed_runs=runs)
                if report.seconds is not None:
                    found.append(report.seconds)
        return times

    def _observe(self, model: OnnxModel, task: str) -> Report:
        """A traced run that keeps outputs; measures resident memory if onnxruntime does not report memory per node."""
        report = self._run(model, task, rounds=1, traced_runs=1, keep_outputs=True)
        if report.failure is not None or computed_bytes(report.run) is not None:
            return report
        resident = self._run(model, f"{task}: resident memory", resident=True)
        return replace(report, resident_bytes=resident.resident_bytes)

    def _run(self, model: OnnxModel, task: str, **changes: object) -> Report:
        self._on_task(task)
        assert model.path is not None
        return run_job(replace(self._job, model=str(model.path), **changes), self._folder)  # type: ignore[arg-type]

    def _check_budget(self, compiled: Report) -> Check:
        peak = peak_of(self._nodes, self._prediction, compiled)
        if peak is None:
            return Check("budget", Outcome.SKIPPED, "the peak cannot be measured here")
        total = peak.bytes + self._reserve
        figures = {"peak_bytes": total, "workspace_bytes": peak.workspace, "budget_bytes": self._budget, "exact": peak.exact}
        where = f" at {peak.node!r}" if peak.node else ""
        kind = "peak" if peak.exact else "resident peak"
        if self._budget is None:
            summary = f"{kind} {format_bytes(total)}{where}; the file has no budget; set one with --budget"
            return Check("budget", Outcome.SKIPPED, summary, (), figures)
        allowance = 0 if peak.exact else rounding(self._budget)
        if total <= self._budget + allowance:
            return Check("budget", Outcome.PASSED, f"{kind} {format_bytes(total)} of {format_bytes(self._budget)}{where}", (), figures)
        summary = f"{kind} {format_bytes(total)}{where} is {total - self._budget} bytes above {format_bytes(self._budget)}"
        details = [f"{peak.workspace} bytes of it are workspace: solve with --profile, which measures workspace"] if peak.workspace else []
        return Check("budget", Outcome.FAILED, summary, tuple(details), figures)

    def _enforce(self, original: Report) -> Check:
        """Under a memory limit, the compiled model must run and the original must fail."""
        if self._budget is None:
            return Check("enforced", Outcome.FAILED, "there is no budget to enforce: set one with --budget")
        needed = peak_of(file_nodes(self._original.proto), predict(self._original), original)
        fits_anyway = needed is not None and needed.bytes + self._reserve <= self._budget + rounding(self._budget)
        peak, base = self._prediction.peak_bytes, self._prediction.base_bytes
        return Enforcement(self._original, self._compiled, self._run, self._budget - self._reserve, peak, base).check(fits_anyway)

    def _predicted_overhead(self) -> float | None:
        amounts = self._options.amounts
        if amounts is None:
            return _number(self._notes.get(OVERHEAD_KEY))
        ideal = sum(amounts.values())
        return _compiled_cost(self._nodes, amounts) / ideal - 1 if ideal else None


def _compiled_cost(nodes: list[FileNode], amounts: Mapping[str, float]) -> float:
    origins = (origin(node.name, amounts) for node in nodes)
    return sum(amounts[name] for name in origins if name is not None)


def _require_same_inputs(original: OnnxModel, compiled: OnnxModel) -> None:
    for model in (original, compiled):
        if model.path is None:
            raise InputError("a model from standard input cannot be run: give a file")
    one, other = ({value.name for value in model.proto.graph.input} for model in (original, compiled))
    if one != other:
        raise InputError(f"{compiled.path}: its inputs differ from those of {original.path}: {', '.join(sorted(one ^ other)[:5])}")


def _draws(kind: str) -> bool:
    """Operations that are pinned because they draw random numbers, not because they have no inputs."""
    return kind.startswith(("Random", "Multinomial", "Bernoulli")) or kind.endswith("Dropout")


def _cannot_run(model: OnnxModel, report: Report) -> Exception:
    if report.failure is Failure.UNAVAILABLE:
        return UnavailableError(report.message)
    return InputError(
        f"{model.path}: onnxruntime {report.version} cannot run it ({report.failure.value if report.failure else ''}): {report.message}"
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
