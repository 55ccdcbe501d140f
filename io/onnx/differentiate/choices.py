"""Names that a user can choose from. In a module without onnx, so that help is fast."""

LOSSES = ("cross-entropy", "mse", "bce-with-logits")
OPTIMIZERS = ("none", "sgd", "adamw")
MODES = ("train", "eval")
