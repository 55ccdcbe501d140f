"""From a forward model to its training graph, by reverse-mode differentiation in standard ONNX operators.

`training_graph.differentiate` runs all steps: `forward_model` prepares the model (functions inlined, opset 18 or newer, sizes), `modes`
puts BatchNormalization and Dropout into training mode, `trainable` finds the parameters, `loss_graphs` adds the loss, `engine` goes
backward with the functions of `io/onnx/gradients`, `optimizers` adds updates, `assembly` makes the model. In `io/onnx/build`,
`known_tensors` and `sampling` infer shapes, free dimensions included; gradients are written with `builder` and `gradient_context`.
"""
