"""Read, compile and differentiate ONNX models.

A model is read node by node in topological order. In `proto`: `model_file` (bytes to protobuf), `dimensions` (symbolic sizes). In `read`:
`scope` (what is known about each tensor), `shapes` and `folding` (types and small constants, computed by onnx), `control`, `loops` and
`bodies` (functions and subgraphs), `work` (FLOP formulas), `translate` (a list of nodes), `reader` (the whole model). The model is never
serialized and its weights are never read, so its size does not matter.
"""
