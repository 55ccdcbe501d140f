"""networkx node-link JSON. The graphs of the Checkmate paper and of MOCCASIN are published in this format.

Every node is one operation that makes one value. Unknown keys are ignored, because these files have layout, tags and more.
"""

from __future__ import annotations

from pathlib import Path

from ...core.model.graph import Graph, OperationSpec, ValueSpec, Work
from .graph_json import DEFAULT_KIND, assemble_at
from .strict_json import Fields, describe, shorten

COST_KEYS = ("cost_cpu", "duration", "cost", "time", "weight")
BYTES_KEYS = ("cost_ram", "out_cost", "bytes", "size", "memory")
KIND_KEYS = ("kind", "op_type", "op", "type")
PARAMETERS_KEY = "param_cost"
END_KEYS = (("source", "target"), ("0", "1"))
LINK_KEYS = ("links", "edges")
"""networkx writes `links` up to version 3.3, `edges` in later versions."""

NodeId = str | int


def looks_like_node_link(content: dict[str, object]) -> bool:
    """True if there are nodes. If links are missing, the parser reports it."""
    return "nodes" in content


def parse_node_link(document: object, where: str) -> Graph:
    """The graph in a parsed document; `where` names the file in messages, and the graph if it has no name."""
    top = Fields(document, where)
    if not top.flag("directed", True):
        top.fail("directed", "the graph is undirected, so it is not known which operation reads from which; set 'directed' to true")
    attributes = top.child("graph") if "graph" in top else Fields({}, where, "graph")
    nodes = list(top.objects("nodes"))
    if not nodes:
        top.fail("nodes", "the graph has no operations")
    position = _positions(nodes)
    names = _unique_names(nodes, list(position))
    sources = _sources(top, position)
    parameters = sum(node.size(PARAMETERS_KEY, 0) for node in nodes)
    specs = [
        OperationSpec(
            name=names[index],
            kind=_kind(node),
            inputs=tuple(names[source] for source in sources[index]),
            outputs=(ValueSpec(names[index], node.size(_present(node, BYTES_KEYS, names[index], "bytes"))),),
            work=Work(cost=node.number(_present(node, COST_KEYS, names[index], "cost"))),
            backward=node.flag("backward"),
        )
        for index, node in enumerate(nodes)
    ]
    if "order" in attributes:
        specs = [specs[index] for index in _stated_order(attributes, position, names, sources)]
    name = attributes.content.get("name")
    title = name if isinstance(name, str) and name else Path(where).stem
    return assemble_at(where, title, specs, (), {"parameters": parameters} if parameters else {})


def _positions(nodes: list[Fields]) -> dict[NodeId, int]:
    """The position of each node, by its id; if nodes have no `id`, links refer to their `name`."""
    key = "id" if any("id" in node for node in nodes) else "name"
    position: dict[NodeId, int] = {}
    for index, node in enumerate(nodes):
        if key not in node:
            node.fail("", "has no 'id'" if key == "id" else "has neither 'id' nor 'name'")
        identity = _identity(node, key, node.content[key])
        if identity in position:
            node.fail(key, f"{identity!r} is already the {key} of nodes[{position[identity]}]")
        position[identity] = index
    return position


def _identity(fields: Fields, key: str, found: object) -> NodeId:
    if isinstance(found, bool) or not isinstance(found, (str, int)):
        fields.fail(key, f"expected text or an integer, found {describe(found)}")
    return found


def _unique_names(nodes: list[Fields], identities: list[NodeId]) -> list[str]:
    """The name of each node; if a name is repeated, `#` and the id are appended."""
    plain: list[str] = []
    for node, identity in zip(nodes, identities, strict=True):
        found = node.content.get("name", identity)
        plain.append(str(found) if isinstance(found, int) and not isinstance(found, bool) else node.text("name", str(identity)))
    taken = set(plain)
    used: set[str] = set()
    names: list[str] = []
    for name, identity in zip(plain, identities, strict=True):
        candidate = name
        if name in used:
            candidate = f"{name}#{identity}"
            while candidate in taken:
                candidate += "'"
            taken.add(candidate)
        used.add(candidate)
        names.append(candidate)
    return names


def _sources(top: Fields, position: dict[NodeId, int]) -> list[list[int]]:
    """The nodes that each node reads from. Repeated links, as in a multigraph, count once."""
    present = [key for key in LINK_KEYS if key in top]
    if len(present) != 1:
        top.fail("", "has both 'links' and 'edges'" if present else "has neither 'links' nor 'edges'")
    sources: list[list[int]] = [[] for _ in position]
    for link in top.objects(present[0]):
        ends = next((pair for pair in END_KEYS if pair[0] in link and pair[1] in link), None)
        if ends is None:
            link.fail("", "needs 'source' and 'target' (or '0' and '1')")
        source, target = (_identity(link, end, link.content[end]) for end in ends)
        for end, identity in zip(ends, (source, target), strict=True):
            if identity not in position:
                link.fail(end, f"there is no node {shorten(repr(identity), 80)}")
        sources[position[target]].append(position[source])
    return sources


def _stated_order(attributes: Fields, position: dict[NodeId, int], names: list[str], sources: list[list[int]]) -> list[int]:
    """`graph.order`: all nodes, each after those it reads from."""
    place: dict[int, int] = {}
    for index, found in enumerate(attributes.items("order")):
        key = f"order[{index}]"
        identity = _identity(attributes, key, found)
        if identity not in position:
            attributes.fail(key, f"there is no node {shorten(repr(identity), 80)}")
        if position[identity] in place:
            attributes.fail(key, f"the node {shorten(repr(identity), 80)} is listed twice")
        place[position[identity]] = index
    for node, read in enumerate(sources):
        if node not in place:
            attributes.fail("order", f"the node {shorten(repr(names[node]), 80)} is missing")
        for source in read:
            if place.get(source, -1) >= place[node]:
                attributes.fail(
                    "order", f"{shorten(repr(names[node]), 80)} comes before {shorten(repr(names[source]), 80)}, which it reads"
                )
    return list(place)


def _present(node: Fields, keys: tuple[str, ...], name: str, what: str) -> str:
    """The first of these keys that a node has; one is required."""
    found = next((key for key in keys if key in node), None)
    if found is None:
        node.fail("", f"the node {shorten(repr(name), 80)} has no {what}; add one of {', '.join(keys)}")
    return found


def _kind(node: Fields) -> str:
    for key in KIND_KEYS:
        found = node.content.get(key)
        if isinstance(found, str) and found:
            return found
    return DEFAULT_KIND
