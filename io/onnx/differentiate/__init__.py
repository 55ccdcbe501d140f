"""From a forward model to its training graph, by reverse-mode differentiation in standard ONNX operators.

`training.differentiate` is the whole of it: `forward` makes the model ready (functions inlined, opset 18 or newer, sizes), `modes` puts
BatchNormalization and Dropout into training mode, `parameters` finds what can be trained, `losses` adds the loss, `engine` walks
backward with the functions of `io/onnx/gradients`, `optimizers` adds updates, `assembly` makes the model. `tensors` and `sampling` know the
shape of everything, free dimensions included; `builder` and `context` are what gradients are written with.
"""
