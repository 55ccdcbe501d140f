"""Everything that uses onnxruntime.

A model runs in its own process: `child` starts it, and `job` runs in it. `inputs` makes the inputs, `tensor_files` exchanges tensors,
`trace` reads the profiler's files, `measure` profiles a model, and `verification` and `checks` verify a compiled model.
"""
