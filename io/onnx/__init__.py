"""ONNX models in and out.

Reading goes node by node in a topological order: `files` (bytes to protobuf), `dimensions` (symbolic sizes), `scope` (what is known of each
tensor), `shapes` and `folding` (types and small constants, from onnx itself), `control`, `loops` and `bodies` (functions and subgraphs),
`work` (FLOP formulas), `translate` (a list of nodes) and `reader` (the whole model). The model is never serialized and its weights are
never touched, so its size does not matter.
"""
