"""Cost models: what each operation gets, and from where."""

from __future__ import annotations

import pytest

from checkmate.core.errors import InputError
from checkmate.core.model.costs import Device, flops_costs, given_costs, has_given_costs, measured_costs, roofline_costs, unit_costs
from checkmate.core.model.graph import Graph, OperationSpec, ValueSpec, Work, assemble


def graph(with_cost: bool = False) -> Graph:
    return assemble(
        "costs",
        [
            OperationSpec("conv", "Conv", (), (ValueSpec("x", 100),), work=Work(3.0 if with_cost else None, 8000.0, 400)),
            OperationSpec("flat", "Reshape", ("x",), (ValueSpec("y", 0, "x"),), view=True),
            OperationSpec("copy", "Odd", ("y",), (ValueSpec("z", 60),), work=Work(None, None, 160)),
            OperationSpec("hand", "Odd", ("z",), (ValueSpec("w", 40),)),
            OperationSpec("read", "Odd", ("y",), (ValueSpec("u", 1),)),
        ],
        (),
        {},
    )


def test_units() -> None:
    costs = unit_costs(graph())
    assert costs.amounts == (1.0, 0.0, 1.0, 1.0, 1.0)
    assert costs.sources == ("unit", "view", "unit", "unit", "unit")
    assert costs.total == 4.0


def test_flops_where_known_and_bytes_elsewhere() -> None:
    costs = flops_costs(graph())
    assert costs.amounts == (8000.0, 0.0, 160.0, 100.0, 101.0)
    assert costs.sources == ("flops", "view", "bytes moved", "bytes moved", "bytes moved")


def test_the_roofline_takes_the_longer_of_computing_and_moving() -> None:
    costs = roofline_costs(graph(), Device("d", flops_per_second=1000.0, bytes_per_second=100.0, launch_seconds=0.5))
    assert costs.amounts == (8.5, 0.0, 2.1, 1.5, 1.51)
    assert costs.sources == ("roofline: compute", "view", "roofline: memory", "roofline: memory", "roofline: memory")
    slow = roofline_costs(graph(), Device("d", flops_per_second=1e9, bytes_per_second=100.0))
    assert slow.amounts[0] == 4.0


def test_given_costs_must_be_complete() -> None:
    assert not has_given_costs(graph())
    assert has_given_costs(graph(with_cost=True))
    with pytest.raises(InputError, match="'copy' has no cost"):
        given_costs(graph(with_cost=True))


def test_measured_costs_name_what_is_missing() -> None:
    assert measured_costs(graph(), {"conv": 1.0, "copy": 2.0, "hand": 3.0, "read": 4.0}).amounts == (1.0, 0.0, 2.0, 3.0, 4.0)
    with pytest.raises(InputError, match="no cost for operation 'hand'"):
        measured_costs(graph(), {"conv": 1.0, "copy": 2.0})
