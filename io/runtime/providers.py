"""Where onnxruntime can run a model, by the names people use. Light: the command line lists them without loading anything."""

from __future__ import annotations

from collections.abc import Mapping

CPU = "CPUExecutionProvider"
PROVIDERS: Mapping[str, str] = {
    "cpu": CPU,
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
    "directml": "DmlExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
}
