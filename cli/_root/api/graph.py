"""Loaded graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from ..core.events import stage
from ..core.model.graph import Graph
from ..core.model.memory_model import MemoryModel
from ..core.model.units import format_bytes

if TYPE_CHECKING:
    from ..io.formats.costs_json import CostsFile
    from ..io.onnx.differentiate.training_files import Differentiated
    from ..io.onnx.read.reader import OnnxModel
    from ..io.torch.files.program_graph import TorchProgram
    from .pricing import CostsChoice, PricedGraph

TORCH = "torch"
"""The format of PyTorch programs, in files and in memory."""
Source = "str | os.PathLike[str] | bytes | ModelProto | Mapping[str, Any]"


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """A graph of operations, its origin, and its memory. Made by `checkmate.load` and `checkmate.differentiate`."""

    graph: Graph
    """Operations and values, the same for every format."""
    format: str
    """`onnx`, `torch`, `checkmate-graph` or `node-link`."""
    source: str
    """The file it was read from; `-` for standard input, empty for a graph that was in memory."""
    onnx: OnnxModel | None = None
    """The ONNX model it was read from, if any; only then can results be compiled."""
    training: Differentiated | None = None
    """The ONNX training graph that `checkmate.differentiate` made, if it did."""
    torch: TorchProgram | None = None
    """The PyTorch program it was read from, if any; its results can be compiled too."""

    @property
    def name(self) -> str:
        return self.graph.name

    @property
    def operations(self) -> int:
        """How many operations there are, views included."""
        return len(self.graph.operations)

    @property
    def can_be_compiled(self) -> bool:
        """True for models and programs, false for JSON graphs."""
        return self.onnx is not None or self.torch is not None

    @property
    def has_backward_pass(self) -> bool:
        return any(operation.backward for operation in self.graph.operations)

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """Bytes of fixed memory, by kind, and of all computed values together."""
        return {**self.graph.fixed, "computed": sum(value.bytes for value in self.graph.values if value.alias_of is None)}

    @property
    def memory_model(self) -> MemoryModel:
        """The default memory model: that of the runtime that runs the model."""
        if self.format == TORCH:
            return MemoryModel.TORCH
        return MemoryModel.GENERIC if self.onnx is None else MemoryModel.ONNXRUNTIME

    @property
    def session_threads(self) -> int | None:
        """Threads of the onnxruntime session that workspaces are counted for; None if this is not an ONNX model."""
        return None if self.onnx is None else self.onnx.threads

    @property
    def keep_all_peak_bytes(self) -> int:
        """The peak without recomputation, in the order of the file."""
        return self._priced.keep_all.peak

    @property
    def smallest_budget_bytes(self) -> int:
        """Proven: every schedule needs at least this much. `checkmate.min_budget` searches for a schedule that needs no more."""
        return self._priced.floor.bytes

    @cached_property
    def _priced(self) -> PricedGraph:
        return self.price("unit")

    def price(
        self,
        costs: CostsChoice | CostsFile = None,
        *,
        device: str | None = None,
        pin: Iterable[str] = (),
        reserve: int | str = 0,
        memory_model: MemoryModel | str | None = None,
    ) -> PricedGraph:
        """The graph with a cost for every operation: a problem for any budget.

        `costs` is `given`, `roofline`, `flops`, `unit`, a file that `checkmate profile` wrote, or a mapping from names to costs. By default
        the costs are those in the graph file or, if it has none, `roofline` for `device`. Operations whose name matches a pattern in `pin`
        run exactly once. `reserve` is memory to leave free for other uses.
        """
        from .pricing import price

        return price(self, costs, device=device, pin=tuple(pin), reserve=reserve, memory_model=memory_model)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.name!r} ({self.format}): {self.operations} operations, keep-all peak "
            f"{format_bytes(self.keep_all_peak_bytes)}, smallest budget {format_bytes(self.smallest_budget_bytes)}>"
        )

    def _repr_html_(self) -> str:
        kinds = "".join(f"<tr><td>{escape(kind)}</td><td>{format_bytes(size)}</td></tr>" for kind, size in self.bytes_by_kind.items())
        return f"<p>{escape(repr(self)[1:-1])}</p><table>{kinds}</table>"


def load(
    source: Any, *, dims: Mapping[str, int] | None = None, batch_size: int | None = None, session_threads: int | None = None
) -> LoadedGraph:
    """Load a graph.

    `source` is a path, the bytes of a file, an `onnx.ModelProto` or a dict of graph JSON; the format is recognized by the content. `dims`
    maps symbolic dimensions of a model to sizes, `batch_size` is the size of the first dimension that is still free. `session_threads` is
    the number of threads of the onnxruntime session that will run the model, by default that of this machine: some operators need
    workspace for each thread. A PyTorch program (.pt2) whose outputs have a loss among them is loaded with its backward pass.
    """
    from ..io import load as reading

    with stage("load"):
        if isinstance(source, LoadedGraph):
            raise InputError("this graph is already loaded; to load it with other sizes, pass its source")
        loaded = reading.load(source, dims=dims, batch_size=batch_size, threads=session_threads)
    return LoadedGraph(loaded.graph, loaded.format, loaded.source, loaded.onnx, torch=loaded.torch)


def as_graph(graph: Any) -> LoadedGraph:
    """The loaded graph, if it is one; otherwise load it."""
    return graph if isinstance(graph, LoadedGraph) else load(graph)
