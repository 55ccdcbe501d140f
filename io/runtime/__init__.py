"""Everything that touches onnxruntime.

A model runs in a process of its own: `child` starts it and `job` is what it does there. `inputs` and `tensors` are what it is fed and what
comes back, `trace` reads the profiler's files, and `measure`, `compare` and `profile` make figures of them.
"""
