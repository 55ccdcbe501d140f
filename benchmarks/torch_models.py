"""Models written in torch and exported to ONNX, with what autograd says of them. torch is imported only when one is built."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

Built = tuple[Any, tuple[Any, ...], Any]
"""A module in training mode, its inputs, and labels."""


@dataclass(frozen=True)
class Case:
    """An exported model beside its original."""

    model: onnx.ModelProto
    gradients: Mapping[str, np.ndarray[Any, Any]]
    """By autograd in float32."""
    exact: Mapping[str, np.ndarray[Any, Any]]
    """By autograd in float64."""
    step: Callable[[], object]
    inputs: Mapping[str, np.ndarray[Any, Any]]
    labels: np.ndarray[Any, Any]

    def feeds(self, label_input: str) -> dict[str, np.ndarray[Any, Any]]:
        return {**self.inputs, label_input: self.labels}


def export(name: str, build: Callable[[], Built], threads: int, *, optimize: bool = False) -> Case:
    """Exported in inference form and, unless asked for, without optimization, which merges equal weights; training form is what we add."""
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    module, inputs, labels = build()
    file = io.BytesIO()
    module.eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(module, inputs, dynamo=True, optimize=optimize, verbose=False)
        program.save(file)
    model = onnx.load_from_string(file.getvalue())
    module.train()
    statistics = {key: value.clone() for key, value in module.state_dict().items()}

    def backward(network: Any, data: tuple[Any, ...]) -> dict[str, np.ndarray[Any, Any]]:
        network.zero_grad(set_to_none=True)
        scores = network(*data)
        classes = scores.shape[-1] if scores.dim() == 3 else scores.shape[1]
        flat = scores.reshape(-1, classes) if scores.dim() == 3 else scores
        torch.nn.functional.cross_entropy(flat, labels.reshape(-1) if scores.dim() == 3 else labels).backward()
        return {key: value.grad.numpy() for key, value in network.named_parameters(remove_duplicate=False) if value.grad is not None}

    def step() -> None:
        backward(module, inputs)

    precise = copy.deepcopy(module).double()
    exact = backward(precise, tuple(value.double() if value.is_floating_point() else value for value in inputs))
    gradients = {key: value.copy() for key, value in backward(module, inputs).items()}
    module.load_state_dict(statistics)
    names = [value.name for value in model.graph.input]
    fed = dict(zip(names, (value.numpy() for value in inputs), strict=True))
    return Case(model, gradients, exact, step, fed, labels.numpy())


def mlp() -> Built:
    import torch
    from torch import nn

    module = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 10))
    return module, (torch.randn(64, 256),), torch.randint(10, (64,))


def small_resnet() -> Built:
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, before: int, after: int, stride: int) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(before, after, 3, stride, 1, bias=False), nn.Conv2d(after, after, 3, 1, 1, bias=False)
            self.n1, self.n2 = nn.BatchNorm2d(after), nn.BatchNorm2d(after)
            short = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
            self.short = nn.Identity() if before == after else short

        def forward(self, x: Any) -> Any:
            y = self.n2(self.second(torch.relu(self.n1(self.first(x)))))
            return torch.relu(y + self.short(x))

    stem = (nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    blocks = (Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
    module = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    return module, (torch.randn(4, 3, 64, 64),), torch.randint(10, (4,))


def resnet18() -> Built:
    return _vision("resnet18", 8)


def resnet50() -> Built:
    return _vision("resnet50", 4)


def mobilenet() -> Built:
    return _vision("mobilenet_v2", 4)


def convnext() -> Built:
    return _vision("convnext_tiny", 2)


def vit() -> Built:
    return _vision("vit_b_16", 2)


def swin() -> Built:
    return _vision("swin_t", 2)


def _vision(name: str, batch: int) -> Built:
    import torch
    import torchvision

    module = getattr(torchvision.models, name)()
    for part in module.modules():
        if type(part).__name__ in ("Dropout", "StochasticDepth"):
            part.p = 0.0
    return module, (torch.randn(batch, 3, 224, 224),), torch.randint(1000, (batch,))


def unet() -> Built:
    import torch
    from torch import nn

    class Block(nn.Sequential):
        def __init__(self, before: int, after: int) -> None:
            super().__init__(
                *(nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.SiLU()),
                *(nn.Conv2d(after, after, 3, padding=1), nn.BatchNorm2d(after), nn.SiLU()),
            )

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.bottom = Block(3, 16), Block(16, 32), Block(32, 64)
            self.up2, self.up1 = nn.ConvTranspose2d(64, 32, 2, 2), nn.Upsample(scale_factor=2, mode="bilinear")
            self.join2, self.join1 = Block(64, 32), Block(48, 16)
            self.last = nn.Conv2d(16, 5, 1)

        def forward(self, x: Any) -> Any:
            first = self.first(x)
            second = self.second(nn.functional.max_pool2d(first, 2))
            bottom = self.bottom(nn.functional.max_pool2d(second, 2))
            second = self.join2(torch.cat([second, self.up2(bottom)], 1))
            return self.last(self.join1(torch.cat([first, self.up1(second)], 1)))

    return UNet(), (torch.randn(2, 3, 64, 64),), torch.randint(5, (2, 64, 64))


def gpt() -> Built:
    import torch
    from torch import nn

    class Attention(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.mix, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            batch, length, width = x.shape
            parts = self.mix(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            mixed = nn.functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
            return self.out(mixed.transpose(1, 2).reshape(batch, length, width))

    class Layer(nn.Module):
        def __init__(self, width: int, heads: int) -> None:
            super().__init__()
            self.n1, self.n2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.attention(self.n1(x))
            return x + self.mlp(self.n2(x))

    class Gpt(nn.Module):
        def __init__(self, vocabulary: int = 1000, width: int = 192, heads: int = 6, layers: int = 4, length: int = 128) -> None:
            super().__init__()
            self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Parameter(torch.randn(length, width) * 0.02)
            self.layers = nn.Sequential(*(Layer(width, heads) for _ in range(layers)))
            self.norm = nn.LayerNorm(width)

        def forward(self, tokens: Any) -> Any:
            hidden = self.norm(self.layers(self.tokens(tokens) + self.places))
            return hidden @ self.tokens.weight.T

    return Gpt(), (torch.randint(1000, (4, 128)),), torch.randint(1000, (4, 128))


def lstm_cells() -> Built:
    import torch
    from torch import nn

    class Cells(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.last = nn.LSTMCell(8, 16), nn.Linear(16, 5)

        def forward(self, x: Any) -> Any:
            hidden = state = x.new_zeros(x.shape[1], 16)
            for step in range(x.shape[0]):
                hidden, state = self.cell(x[step], (hidden, state))
            return self.last(hidden)

    return Cells(), (torch.randn(4, 3, 8),), torch.randint(5, (3,))


def lstm() -> Built:
    return _recurrent("LSTM")


def gru() -> Built:
    return _recurrent("GRU")


def rnn() -> Built:
    return _recurrent("RNN")


def _recurrent(kind: str) -> Built:
    import torch
    from torch import nn

    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = getattr(nn, kind)(8, 16, num_layers=2, bidirectional=True, batch_first=True)
            self.last = nn.Linear(32, 5)

        def forward(self, x: Any) -> Any:
            return self.last(self.cells(x)[0])

    return Tagger(), (torch.randn(3, 6, 8),), torch.randint(5, (3, 6))


def hf_bert() -> Built:
    return _transformer("BertForSequenceClassification", "BertConfig", max_position_embeddings=32)


def hf_gpt2() -> Built:
    return _transformer("GPT2LMHeadModel", "GPT2Config", n_positions=32, use_cache=False)


def hf_llama() -> Built:
    return _transformer("LlamaForCausalLM", "LlamaConfig", num_key_value_heads=2, max_position_embeddings=32, use_cache=False)


def hf_vit() -> Built:
    return _transformer("ViTForImageClassification", "ViTConfig", image_size=32, patch_size=8)


def _transformer(model: str, config: str, **options: Any) -> Built:
    """A small one from its configuration, with fresh weights and without dropout."""
    import torch
    import transformers
    from torch import nn

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 99}
    chosen = getattr(transformers, config)(**sizes, **options, bos_token_id=1, eos_token_id=2)

    class Logits(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = getattr(transformers, model)(chosen)

        def forward(self, data: Any) -> Any:
            return self.inner(data).logits

    module = Logits()
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    data = torch.randn(2, 3, 32, 32) if "image_size" in options else torch.randint(99, (2, 12))
    for part in module.modules():
        if hasattr(part, "attention_dropout") and isinstance(part.attention_dropout, float):
            part.attention_dropout = 0.0
    scores = module.eval()(data)
    return module, (data,), torch.randint(scores.shape[-1], scores.shape[:-1])


MODELS: Mapping[str, Callable[[], Built]] = {
    "mlp": mlp,
    "small_resnet": small_resnet,
    "unet": unet,
    "gpt": gpt,
    "lstm_cells": lstm_cells,
    "lstm": lstm,
    "gru": gru,
    "rnn": rnn,
    "hf_bert": hf_bert,
    "hf_gpt2": hf_gpt2,
    "hf_llama": hf_llama,
    "hf_vit": hf_vit,
    "resnet18": resnet18,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenet,
    "convnext": convnext,
    "vit": vit,
    "swin": swin,
}
TIMED = ("resnet18", "resnet50", "gpt", "vit")
"""Where the running time is held to a figure."""
