"""Small PyTorch programs as the bytes of `.pt2` files."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_zoo import GPT, Logits, ResNet, images, tokens


def program_file(model: nn.Module, inputs: tuple[Tensor, ...], **options: Any) -> bytes:
    """What `torch.export.save` writes."""
    file = io.BytesIO()
    torch.export.save(torch.export.export(model, inputs, **options), file)
    return file.getvalue()


class Tiny(nn.Module):
    """Views, a split, a block without gradients, a buffer that is written to, a constant, a keyword, two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(4, 12), nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(()))
        self.scale = torch.full((4,), 0.5)

    def forward(self, x: Tensor, labels: Tensor, *, shift: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            self.count += 1
        a, b, c = self.one(x * self.scale + shift).split(4, -1)
        hidden = F.gelu(a) * torch.sigmoid(b).unsqueeze(0).squeeze(0) + c.clamp(-1, 1)
        logits = self.two(hidden.view(-1, 4))
        return {"loss": F.cross_entropy(logits, labels), "logits": logits}


@cache
def tiny_file() -> bytes:
    batch = torch.export.Dim("batch", min=2, max=1024)
    inputs = (torch.randn(6, 4), torch.zeros(6, dtype=torch.long))
    shapes = {"x": {0: batch}, "labels": {0: batch}, "shift": {}}
    file = io.BytesIO()
    program = torch.export.export(Tiny(), inputs, {"shift": torch.ones(4)}, dynamic_shapes=shapes)
    torch.export.save(program, file)
    return file.getvalue()


@cache
def resnet_file() -> bytes:
    return program_file(ResNet(4, 1), images(2, 8))


@cache
def gpt_file(dropout: float = 0.0) -> bytes:
    batch = torch.export.Dim("batch", min=2, max=4096)
    return program_file(GPT(layers=1, dropout=dropout), tokens(), dynamic_shapes=({0: batch}, {0: batch}))


@cache
def logits_file() -> bytes:
    return program_file(Logits(layers=1), tokens()[:1])
