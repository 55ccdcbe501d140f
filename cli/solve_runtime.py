"""What `solve` does in onnxruntime when asked: measure costs before it solves, run what it wrote afterwards."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from .command import Function, option
from .options import GraphRequest
from .outputs import SCHEDULE_SUFFIX, Destinations
from .pipeline import Prepared
from .profile import COSTS_SUFFIX, run_profile, write_costs
from .progress import Progress
from .runtime_verify import RUNNING, RunningRequest, run_verification
from .session import Session

if TYPE_CHECKING:
    from ..io.costs_json import CostsFile
    from ..io.onnx.reader import OnnxModel
    from ..io.runtime.profile import ProfileResult
    from ..io.runtime.verification import Verification


@dataclass(slots=True)
class RuntimeRequest:
    """What to do besides solving, and what came of it."""

    profile: bool
    verify: bool
    result: ProfileResult | None = None

    def check(self, request: GraphRequest, output: str | None, no_onnx: bool) -> None:
        """What cannot be is said before the long work."""
        if self.profile and (request.costs is not None or request.device is not None):
            raise InputError("--profile measures the costs: leave out --costs and --device")
        if self.verify and (output == "-" or no_onnx):
            raise InputError("--verify runs the compiled model, which is not written with " + ("-o -" if output == "-" else "--no-onnx"))
        if (self.profile or self.verify) and request.source == "-":
            raise InputError("to run a model it must be a file, not standard input; leave out --profile and --verify")

    def require_model(self, destinations: Destinations) -> None:
        if self.verify and destinations.model is None:
            raise InputError("--verify runs the compiled model, and there is none: the input is not an ONNX model")

    def measure(self, progress: Progress, *, made: bool) -> Callable[[OnnxModel | None], CostsFile] | None:
        """How to price the model, if it is to be measured. One that was `made` by us is in no file yet."""
        return functools.partial(self._measure, progress, made) if self.profile else None

    def _measure(self, progress: Progress, made: bool, model: OnnxModel | None) -> CostsFile:
        from ..io.runtime.profile import ProfileWishes

        if model is None:
            raise InputError("--profile runs the model, so it must be an ONNX model; a JSON graph states its costs itself")
        self.result = run_profile(progress, replace(model, path=None) if made else model, ProfileWishes())
        return self.result.costs

    def costs_file(self, destinations: Destinations) -> Path | None:
        """Where measured costs go: whoever verifies the schedule later needs them."""
        if not self.profile or destinations.schedule is None:
            return None
        return Path(str(destinations.schedule).removesuffix(SCHEDULE_SUFFIX).removesuffix(".json") + COSTS_SUFFIX)

    def write_costs(self, path: Path | None) -> list[Path]:
        if path is None or self.result is None:
            return []
        write_costs(self.result, path)
        return [path]

    def run_written(
        self, session: Session, prepared: Prepared, request: GraphRequest, compiled: Path | None, training_graph: Path | None
    ) -> Verification | None:
        """Run what was written beside what it was made from."""
        if not self.verify or compiled is None or prepared.loaded.onnx is None:
            return None
        with Progress(session) as progress:
            original = prepared.loaded.onnx
            sizes = request
            if training_graph is not None:
                from ..io.onnx.reader import read_onnx

                original = read_onnx(training_graph)
                sizes = replace(request, dims={}, batch_size=None)
            return run_verification(progress, original, str(compiled), sizes, RunningRequest(), None, None)


def runtime_options(function: Function) -> Function:
    """Handed to the command as one `runtime`."""

    @functools.wraps(function)
    def packed(*arguments: Any, **values: Any) -> Any:
        return function(*arguments, runtime=RuntimeRequest(values.pop("measure_first"), values.pop("run_after")), **values)

    decorated: Any = packed
    for decorate in (
        option("--verify", "run_after", group=RUNNING, is_flag=True, help="Run what was written, as 'checkmate verify' does."),
        option("--profile", "measure_first", group=RUNNING, is_flag=True, help="Measure costs first, as 'checkmate profile' does."),
    ):
        decorated = decorate(decorated)
    return decorated  # type: ignore[no-any-return]
