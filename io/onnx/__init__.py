"""ONNX models in and out.

Reading goes node by node in a topological order: `files` (bytes to protobuf), `dimensions` (symbolic sizes), `scope` (what is known of each
tensor), `shapes` and `folding` (types and small constants, from onnx itself), `control` (functions and subgraphs), `work` (FLOP formulas),
`translate` (one body of nodes) and `reader` (the whole model). The model is never serialized and its weights are never touched, so its size
does not matter.
"""
