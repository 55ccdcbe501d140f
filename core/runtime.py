"""Which memory model a schedule is judged by: the plain one of the paper, or that of the runtime that will execute it."""

from __future__ import annotations

from enum import Enum


class Runtime(Enum):
    """Both free a value after its last read and let views share a buffer; they differ in what an operation may overwrite."""

    GENERIC = "generic"
    """The paper's model: every output of an operation that is no view gets a buffer of its own."""
    ONNXRUNTIME = "onnxruntime"
    """onnxruntime's: an operation writes over an input it may overwrite (`Operation.in_place`) if nothing needs that buffer any more."""
