"""Small models of every kind that people train in PyTorch, each with inputs and a training step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

Step = Callable[[Callable[..., Any], tuple[Tensor, ...]], Tensor]


def loss_inside(model: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    """The model returns its loss."""
    loss: Tensor = model(*inputs)
    loss.backward()
    return loss.detach()


@dataclass(frozen=True)
class Entry:
    """A model, its inputs, and how to train it."""

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Tensor, ...]]
    step: Step = loss_inside
    exact: bool = True
    """Whether the predicted peak covers the whole step: not if the loss is computed outside the compiled model."""
    share: str = "70%"
    """A budget that needs recomputation."""
    graphs: int = 1


class Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.heads, self.rate = heads, dropout
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, causal: bool = True) -> Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, -1)
        q, k, v = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        rate = self.rate if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal, dropout_p=rate)
        x = x + self.dropout(self.out(mixed.transpose(1, 2).reshape(batch, length, width)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class GPT(nn.Module):
    """A decoder with its loss."""

    def __init__(
        self,
        layers: int = 2,
        width: int = 32,
        heads: int = 2,
        words: int = 64,
        length: int = 32,
        dropout: float = 0.0,
        tied: bool = False,
        checkpointed: bool = False,
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.checkpointed = checkpointed
        if tied:
            self.head.weight = self.words.weight

    def logits(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        logits: Tensor = self.head(self.norm(x))
        return logits

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.logits(tokens).flatten(0, 1), labels.flatten())


class ResNet(nn.Module):
    def __init__(self, width: int = 8, blocks: int = 3, classes: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True))
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.stem(images)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


class SharedNorm(nn.Module):
    """One batch normalization, used three times in one step."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.convs = nn.ModuleList(nn.Conv2d(width, width, 3, padding=1) for _ in range(3))
        self.norm = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.stem(images)
        for conv in self.convs:
            x = F.relu(self.norm(conv(x)))
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


class UNet(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()

        def double(a: int, b: int) -> nn.Sequential:
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())

        self.down1, self.down2, self.bottom = double(3, width), double(width, 2 * width), double(2 * width, 4 * width)
        self.up2, self.join2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), double(4 * width, 2 * width)
        self.up1, self.join1 = nn.ConvTranspose2d(2 * width, width, 2, 2), double(2 * width, width)
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        one = self.down1(images)
        two = self.down2(F.max_pool2d(one, 2))
        x = self.bottom(F.max_pool2d(two, 2))
        x = self.join2(torch.cat((self.up2(x), two), 1))
        x = self.join1(torch.cat((self.up1(x), one), 1))
        return F.cross_entropy(self.head(x), labels)


class MobileNet(nn.Module):
    def __init__(self, width: int = 8, blocks: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, stride=2, padding=1, bias=False)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, 4 * width, 1, bias=False),
                nn.BatchNorm2d(4 * width),
                nn.ReLU6(inplace=True),
                nn.Conv2d(4 * width, 4 * width, 3, padding=1, groups=4 * width, bias=False),
                nn.BatchNorm2d(4 * width),
                nn.Hardswish(),
                nn.Conv2d(4 * width, width, 1, bias=False),
                nn.BatchNorm2d(width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.stem(images)
        for block in self.blocks:
            x = x + block(x)
        return F.cross_entropy(self.head(F.adaptive_avg_pool2d(x, 1).flatten(1)), labels)


class ViT(nn.Module):
    def __init__(self, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 8, 8)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, 17, width))
        self.blocks = nn.ModuleList(Block(width, 2, 0.0) for _ in range(layers))
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.places
        for block in self.blocks:
            x = block(x, causal=False)
        return F.cross_entropy(self.head(x[:, 0]), labels)


class MoE(nn.Module):
    """Every expert runs on every token; the router weighs the results."""

    def __init__(self, width: int = 32, experts: int = 4) -> None:
        super().__init__()
        self.stem = nn.Linear(16, width)
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(experts)
        )
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        x = self.stem(x)
        weights, chosen = self.router(x).softmax(-1).topk(2, -1)
        weights = torch.zeros(x.shape[0], len(self.experts), device=x.device).scatter(1, chosen, weights)
        x = x + sum(weights[:, number, None] * expert(x) for number, expert in enumerate(self.experts))
        return F.cross_entropy(self.head(x), labels)


class CellLoop(nn.Module):
    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.cell, self.head = nn.LSTMCell(8, width), nn.Linear(width, 10)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        state = (x.new_zeros(x.shape[0], 16), x.new_zeros(x.shape[0], 16))
        for moment in range(x.shape[1]):
            state = self.cell(x[:, moment], state)
        return F.cross_entropy(self.head(state[0]), labels)


class LSTM(nn.Module):
    """torch.compile leaves nn.LSTM to eager mode: the model is compiled around it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.lstm, self.head = nn.Linear(8, 16), nn.LSTM(16, 16, batch_first=True), nn.Linear(16, 10)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        x = F.gelu(self.stem(x))
        x, _ = self.lstm(x)
        return F.cross_entropy(self.head(F.gelu(x)[:, -1]), labels)


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = GPT()

    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            loss: Tensor = self.model(tokens, labels)
        return loss


class Broken(nn.Module):
    """A graph break in the middle."""

    def __init__(self, width: int = 64, layers: int = 4) -> None:
        super().__init__()
        self.first = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )
        self.second = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(layers)
        )
        self.seen = 0.0

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        for layer in self.first:
            x = x + layer(x)
        torch._dynamo.graph_break()
        for layer in self.second:
            x = x + layer(x)
        return F.cross_entropy(x, labels)


class Outputs(nn.Module):
    """Several outputs: a loss, activations, a view of one, a view of an input, an integer, nothing."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> tuple[Any, ...]:
        source = x
        hidden = []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            hidden.append(x)
        return x.square().mean(), hidden[1], hidden[2].t(), source[1:], hidden[3].argmax(1), None


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x.sigmoid() * factor

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        sigmoid = x.sigmoid()
        return gradient * ctx.factor * (sigmoid * (1 + x * (1 - sigmoid))), None


class Custom(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = Scaled.apply(layer(x), 1.5)
        return x.square().mean()


class Counting(nn.Module):
    """Buffers that the forward pass writes to: a counter, and a running mean that it also uses."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(4))
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        for layer in self.layers:
            x = torch.tanh(layer(x - self.mean))
        with torch.no_grad():
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return (x - self.mean).square().mean()


def tokens(batch: int = 4, words: int = 64, length: int = 32) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(batch)
    return tuple(torch.randint(0, words, (batch, length), generator=generator) for _ in range(2))


def images(batch: int = 4, size: int = 32, classes: int = 10, dense: bool = False) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(batch)
    shape = (batch, size, size) if dense else (batch,)
    return torch.randn(batch, 3, size, size, generator=generator), torch.randint(0, classes, shape, generator=generator)


def vectors(batch: int = 64, width: int = 32, classes: int = 10) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(batch)
    return torch.randn(batch, width, generator=generator), torch.randint(0, classes, (batch,), generator=generator)


def sequences(batch: int = 8, length: int = 8) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(batch)
    return torch.randn(batch, length, 8, generator=generator), torch.randint(0, 10, (batch,), generator=generator)


def loss_outside(model: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    """The model returns logits."""
    loss = F.cross_entropy(model(inputs[0]).flatten(0, 1), inputs[1].flatten())
    loss.backward()
    return loss.detach()


def several_outputs(model: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    loss, hidden, turned, rest, best, nothing = model(inputs[0])
    assert nothing is None
    (loss + hidden.mean()).backward()
    return torch.cat(
        [loss.detach().reshape(1), hidden.detach().flatten(), turned.detach().flatten(), rest.flatten(), best.flatten().float()]
    )


def input_gradient(model: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    x = inputs[0].detach().requires_grad_()
    model(x).backward()
    assert x.grad is not None
    return x.grad


class Logits(GPT):
    def forward(self, tokens: Tensor) -> Tensor:  # type: ignore[override]
        return self.logits(tokens)


def one(model: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Tensor:
    """Only the first input."""
    return loss_inside(model, inputs[:1])


ZOO: dict[str, Entry] = {
    "gpt": Entry(GPT, tokens, share="60%"),
    "gpt-dropout": Entry(lambda: GPT(dropout=0.1), tokens),
    "gpt-tied": Entry(lambda: GPT(tied=True), tokens),
    "checkpoint": Entry(lambda: GPT(checkpointed=True), tokens),
    "autocast": Entry(Autocast, tokens),
    "loss-outside": Entry(Logits, tokens, loss_outside, exact=False),
    "resnet": Entry(ResNet, images),
    "shared-norm": Entry(SharedNorm, images),
    "unet": Entry(UNet, lambda: images(2, classes=4, dense=True), share="80%"),
    "mobilenet": Entry(MobileNet, images),
    "vit": Entry(ViT, images),
    "moe": Entry(MoE, lambda: vectors(width=16)),
    "lstm-cells": Entry(CellLoop, sequences),
    "lstm": Entry(LSTM, sequences, exact=False, share="100%"),
    "graph-break": Entry(Broken, lambda: vectors(256, 64), share="60%", graphs=2),
    "outputs": Entry(Outputs, vectors, several_outputs, exact=False, share="90%"),
    "input-gradient": Entry(Custom, vectors, input_gradient),
    "autograd-function": Entry(Custom, vectors, one),
    "buffers": Entry(Counting, vectors, one, share="80%"),
}
