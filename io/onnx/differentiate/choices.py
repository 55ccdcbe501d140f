"""Names a user can choose from. Apart from everything that needs onnx, so that help is fast."""

LOSSES = ("cross-entropy", "mse", "bce-with-logits")
OPTIMIZERS = ("none", "sgd", "adamw")
MODES = ("train", "eval")
