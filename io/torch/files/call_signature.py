"""How a user calls a PyTorch program: the structure of its inputs, read from the JSON of the program."""

from __future__ import annotations

from typing import Any

from ....core.errors import InputError
from ...formats.strict_json import Fields, parse_json, quote


def input_structure(module: Fields) -> tuple[Any, tuple[str, ...]]:
    """How a user passes the inputs: nested tuples, lists and dicts with None for each tensor."""
    entries = list(module.objects("module_call_graph"))
    first = next((entry for entry in entries if entry.content.get("fqn") == ""), None)
    if first is None or not isinstance(first.content.get("signature"), dict):
        return (), ()
    signature = first.child("signature")
    names = signature.content.get("forward_arg_names")
    known = tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()
    document = parse_json(signature.text("in_spec").encode(), f"{signature.where}: {signature.path}.in_spec")
    if not isinstance(document, list) or len(document) != 2 or document[0] != 1:
        raise InputError(f"{signature.where}: {signature.path}.in_spec: expected the first version of torch's format")
    return _tree(Fields(document[1], signature.where, f"{signature.path}.in_spec")), known


def _tree(fields: Fields, depth: int = 0) -> Any:
    if depth > 50:
        fields.fail("", "nested too deeply")
    kind = fields.get("type")
    children = [_tree(each, depth + 1) for each in fields.objects("children_spec")]
    match kind:
        case None:
            return None
        case "builtins.tuple":
            return tuple(children)
        case "builtins.list":
            return children
        case "builtins.dict":
            keys = parse_json(fields.text("context").encode(), f"{fields.where}: {fields.path}.context")
            if not isinstance(keys, list) or len(keys) != len(children) or not all(isinstance(key, str) for key in keys):
                fields.fail("context", "expected the keys of a dict")
            return dict(zip(keys, children, strict=True))
        case _:
            pass
    return fields.fail("type", f"inputs in {quote(str(kind))} are not supported: use tuples, lists and dicts")
