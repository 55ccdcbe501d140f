"""networkx node-link JSON in the flavours found in the wild."""

from __future__ import annotations

from typing import Any

import pytest

from checkmate.core.errors import InputError
from checkmate.core.model.graph import Graph
from checkmate.io.formats.node_link import parse_node_link


def paper(**more: Any) -> dict[str, Any]:
    """As the Checkmate paper's graphs are published."""
    return {
        "directed": True,
        "multigraph": False,
        "graph": {"name": "net_train"},
        "nodes": [
            {"name": "conv", "backward": False, "cost_cpu": 110, "cost_ram": 162508800, "id": 0},
            {"name": "relu", "backward": False, "cost_cpu": 0.5, "cost_ram": 8, "id": 1},
            {"name": "grad", "backward": True, "cost_cpu": 3, "cost_ram": 1e9, "id": 2},
        ],
        "links": [{"source": 0, "target": 1}, {"source": 1, "target": 2}, {"source": 0, "target": 2}],
        **more,
    }


def moccasin(**more: Any) -> dict[str, Any]:
    """As MOCCASIN's graphs are published: no ids, links by name under "0" and "1", the order apart."""
    graph = {"name": "layered", "pos": {"0": [0, -1]}, "node_duration_tag": "duration", "order": [0, 2, 1]}
    nodes = [{"out_cost": 790 + name, "param_cost": name, "duration": name, "name": name} for name in range(3)]
    return {"directed": True, "multigraph": False, "graph": graph, "nodes": nodes, "links": [{"0": 0, "1": 2}, {"0": 2, "1": 1}], **more}


def names(graph: Graph) -> list[str]:
    return [operation.name for operation in graph.operations]


def inputs(graph: Graph) -> dict[str, list[str]]:
    return {operation.name: sorted(graph.values[value].name for value in operation.inputs) for operation in graph.operations}


def test_the_papers_flavour() -> None:
    graph = parse_node_link(paper(), "g.json")
    assert (graph.name, graph.outputs, graph.fixed) == ("net_train", (), {})
    assert inputs(graph) == {"conv": [], "relu": ["conv"], "grad": ["conv", "relu"]}
    assert [operation.work.cost for operation in graph.operations] == [110, 0.5, 3]
    assert [value.bytes for value in graph.values] == [162508800, 8, 1_000_000_000]
    assert [operation.backward for operation in graph.operations] == [False, False, True]


def test_moccasins_flavour_in_its_own_order() -> None:
    graph = parse_node_link(moccasin(), "g.json")
    assert names(graph) == ["0", "2", "1"]
    assert inputs(graph) == {"0": [], "2": ["0"], "1": ["2"]}
    assert [value.bytes for value in graph.values] == [790, 792, 791]
    assert [operation.work.cost for operation in graph.operations] == [0, 2, 1]
    assert graph.fixed == {"parameters": 3}


def test_the_given_order_of_the_nodes_is_kept_where_it_is_topological_and_mended_where_not() -> None:
    kept = {**moccasin(), "graph": {}}
    assert names(parse_node_link(kept, "some/g.json")) == ["0", "2", "1"]
    assert parse_node_link(kept, "some/g.json").name == "g"
    assert names(parse_node_link(paper(nodes=list(reversed(paper()["nodes"]))), "g.json")) == ["conv", "relu", "grad"]


@pytest.mark.parametrize("edges", ["links", "edges"])
@pytest.mark.parametrize("multigraph", [False, True])
def test_what_networkx_writes_today(edges: str, multigraph: bool) -> None:
    nodes = [
        {"cost": 1, "bytes": 2, "op": "Conv", "id": "a"},
        {"time": 3, "memory": 4, "id": "b"},
        {"weight": 5, "size": 6, "id": "c"},
    ]
    links: list[dict[str, Any]] = [{"source": "a", "target": "b"}, {"source": "b", "target": "c"}]
    if multigraph:
        links = [{**link, "key": key} for link in links for key in (0, 1)]
    document = {"directed": True, "multigraph": multigraph, "graph": {"name": "mine"}, "nodes": nodes, edges: links}
    graph = parse_node_link(document, "g.json")
    assert inputs(graph) == {"a": [], "b": ["a"], "c": ["b"]}
    assert [operation.kind for operation in graph.operations] == ["Conv", "operation", "operation"]
    assert [operation.work.cost for operation in graph.operations] == [1, 3, 5]
    assert [value.bytes for value in graph.values] == [2, 4, 6]


def test_names_that_repeat_become_unique() -> None:
    nodes = [{"id": index, "name": name, "cost": 1, "bytes": 1} for index, name in enumerate(["a", "a", "a#1", "a"])]
    graph = parse_node_link({"nodes": nodes, "links": [{"source": 1, "target": 3}]}, "g.json")
    assert names(graph) == ["a", "a#1'", "a#1", "a#3"]
    assert inputs(graph)["a#3"] == ["a#1'"]


def without(key: str) -> list[dict[str, Any]]:
    return [{name: content for name, content in node.items() if name != key} for node in paper()["nodes"]]


def with_node(**more: Any) -> list[dict[str, Any]]:
    first, *rest = paper()["nodes"]
    return [first, {**rest[0], **more}, *rest[1:]]


def ordered(order: object) -> dict[str, Any]:
    return moccasin(graph={"order": order})


HOSTILE: dict[str, tuple[object, str]] = {
    "undirected": (paper(directed=False), "g.json: directed: the graph is undirected"),
    "empty": (paper(nodes=[], links=[]), "g.json: nodes: the graph has no operations"),
    "nodes object": (paper(nodes={}), "g.json: nodes: expected a list [...], found an object"),
    "no links": ({"nodes": paper()["nodes"]}, "g.json: has neither 'links' nor 'edges'"),
    "both": (paper(edges=[]), "g.json: has both 'links' and 'edges'"),
    "no cost": (
        paper(nodes=without("cost_cpu")),
        "g.json: nodes[0]: the node 'conv' has no cost; add one of cost_cpu, duration, cost, time, weight",
    ),
    "no bytes": (
        paper(nodes=without("cost_ram")),
        "g.json: nodes[0]: the node 'conv' has no bytes; add one of cost_ram, out_cost, bytes, size, memory",
    ),
    "no id": (paper(nodes=[*paper()["nodes"], {"name": "x", "cost": 1, "bytes": 1}]), "g.json: nodes[3]: has no 'id'"),
    "no name either": (moccasin(nodes=[{"duration": 1, "out_cost": 1}]), "g.json: nodes[0]: has neither 'id' nor 'name'"),
    "duplicate id": (paper(nodes=with_node(id=0)), "g.json: nodes[1].id: 0 is already the id of nodes[0]"),
    "list as id": (paper(nodes=with_node(id=[1, 2])), "g.json: nodes[1].id: expected text or an integer, found a list"),
    "true as id": (paper(nodes=with_node(id=True)), "g.json: nodes[1].id: expected text or an integer, found true"),
    "negative": (paper(nodes=with_node(cost_ram=-8)), "g.json: nodes[1].cost_ram: -8 is negative"),
    "negative cost": (paper(nodes=with_node(cost_cpu=-8)), "g.json: nodes[1].cost_cpu: -8 is negative"),
    "text cost": (paper(nodes=with_node(cost_cpu="8")), "g.json: nodes[1].cost_cpu: expected a number, found the text '8'"),
    "half a byte": (paper(nodes=with_node(cost_ram=0.5)), "g.json: nodes[1].cost_ram: 0.5 is not a whole number"),
    "dangling": (paper(links=[{"source": 0, "target": 7}]), "g.json: links[0].target: there is no node 7"),
    "text for a number": (paper(links=[{"source": "0", "target": 1}]), "g.json: links[0].source: there is no node '0'"),
    "half a link": (paper(links=[{"source": 0}]), "g.json: links[0]: needs 'source' and 'target' (or '0' and '1')"),
    "link as a list": (paper(links=[[0, 1]]), "g.json: links[0]: expected an object {...}, found a list"),
    "cycle": (
        paper(links=[{"source": 0, "target": 1}, {"source": 1, "target": 0}]),
        "g.json: the graph has a cycle: 'conv' -> 'relu' -> 'conv'",
    ),
    "order with a stranger": (ordered([0, 2, 9]), "g.json: graph.order[2]: there is no node 9"),
    "order with a repeat": (ordered([0, 2, 2]), "g.json: graph.order[2]: the node 2 is listed twice"),
    "order too short": (ordered([0, 2]), "g.json: graph.order: the node '1' is missing"),
    "order against a link": (ordered([0, 1, 2]), "g.json: graph.order: '1' comes before '2', which it reads"),
    "order as text": (ordered("012"), "g.json: graph.order: expected a list [...], found the text '012'"),
    "graph as a list": (paper(graph=[]), "g.json: graph: expected an object {...}, found a list"),
    "not an object": ([], "g.json: expected an object {...}, found a list"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_files_get_one_clear_line(case: str) -> None:
    hostile, message = HOSTILE[case]
    with pytest.raises(InputError) as caught:
        parse_node_link(hostile, "g.json")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
