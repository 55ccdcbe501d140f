"""Inductor's kernels with our choice of what to save."""

from __future__ import annotations

import copy
import shutil
from importlib import import_module

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor needs a C++ compiler on the CPU")

from torch_zoo import Custom, loss_inside, vectors

import checkmate.torch


@pytest.mark.slow
def test_gradients_are_close_and_the_peak_is_measured() -> None:
    import_module("pyomo.environ")  # its stand-ins for missing libraries are in the way of Inductor
    torch._dynamo.reset()
    torch.manual_seed(0)
    eager = Custom()
    plain = copy.deepcopy(eager)
    model = checkmate.torch.compile(plain, budget="70%", compiler="inductor", cache=False, time_limit=2)
    inputs = vectors()[:1]
    for _ in range(3):
        for each in (eager, plain):
            each.zero_grad()
        expected, found = loss_inside(eager, inputs), loss_inside(model, inputs)
        assert torch.allclose(expected, found)
    for (name, one), (_, other) in zip(eager.named_parameters(), plain.named_parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-6), name
    (plan,) = checkmate.torch.plans(model)
    assert plan.compiler == "inductor"
    assert plan.recomputed > 0
    assert plan.measured_peak_bytes is not None
    assert plan.fixed_bytes < plan.measured_peak_bytes < plan.keep_all_peak_bytes
