"""Every model of the zoo: results bit-equal to eager mode, memory as predicted."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install torch==2.13.0")

from torch_runs import Pair
from torch_zoo import ZOO

STEPS = 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:checkmate. torch.compile leaves a part")
@pytest.mark.parametrize("name", ZOO)
def test_gradients_buffers_and_peak(name: str) -> None:
    """Three steps, so that buffers that are updated in each are compared too; a model of several graphs is planned anew in the second."""
    entry = ZOO[name]
    pair = Pair.of(entry)
    for number in range(STEPS):
        assert pair.step(number) == []
    plans = pair.plans
    assert len(plans) == entry.graphs
    assert not any(plan.provisional for plan in plans)
    for plan in plans:
        assert plan.peak_bytes <= plan.budget_bytes
        assert plan.keep_all_peak_bytes >= plan.peak_bytes
    assert entry.share == "100%" or sum(plan.recomputed for plan in plans) > 0
    if entry.exact:
        assert pair.measured_peak() + plans[0].fixed_bytes == plans[0].peak_bytes
