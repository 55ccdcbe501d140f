"""From a path or bytes to a `ModelProto`, without loading external data."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from onnx import ModelProto, OperatorSetIdProto, TensorProto

from ....core.errors import InputError

LARGEST_PROTOBUF = 2**31 - 1
OLDEST_OPSET = 7
_NEWEST_OPSET = 2**31 - 1


def load_model(source: Path | bytes, label: str) -> ModelProto:
    """Parse a model and check that it is one. `label` names it in messages."""
    data = _read(source, label) if isinstance(source, Path) else source
    if not data:
        raise InputError(f"{label}: the file is empty")
    try:
        model: ModelProto = ModelProto.FromString(data)
    except DecodeError as error:
        if "alloc" in str(error):
            raise MemoryError(str(error)) from None
        what = "JSON" if data.lstrip()[:1] in (b"{", b"[") else "not an ONNX file, or a truncated one"
        raise InputError(f"{label}: cannot be read as ONNX: this looks like {what}") from None
    if not model.HasField("graph") or not (model.graph.node or model.graph.output):
        raise InputError(f"{label}: has no graph: this is not an ONNX model")
    if not _is_text_sound(model):
        raise InputError(f"{label}: a name in the file is not UTF-8: the file is damaged")
    return model


def _is_text_sound(message: Message) -> bool:
    """protobuf returns text that is not UTF-8 as bytes: refuse it. In tensors, which are large, only the name is checked."""
    if isinstance(message, TensorProto):
        return isinstance(message.name, str) and all(map(_is_text_sound, message.external_data))
    for field, content in message.ListFields():
        values = [content] if isinstance(content, bytes | str | Message | int | float) else content
        if field.type == field.TYPE_STRING and not all(isinstance(value, str) for value in values):
            return False
        if field.type == field.TYPE_MESSAGE and not all(map(_is_text_sound, values)):
            return False
    return True


def _read(path: Path, label: str) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"{label}: this is a folder; give an ONNX file")
        if path.stat().st_size > LARGEST_PROTOBUF:
            raise InputError(f"{label}: a protobuf file cannot be larger than 2 GiB: store the weights as external data")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{label}: no such file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError(f"{label}: cannot be read: {reason}") from None


def imported_opsets(model: ModelProto, label: str) -> dict[str, int]:
    """Versions by domain, the default domain as ""."""
    opsets = opset_versions(model.opset_import)
    if "" not in opsets and any(plain_domain(node.domain) == "" for node in model.graph.node):
        if model.ir_version >= 3:
            raise InputError(f"{label}: imports no opset for the standard operators; is the file complete?")
        opsets[""] = 1
    version = opsets.get("", OLDEST_OPSET)
    if version < OLDEST_OPSET:
        raise InputError(f"{label}: opset {version} is too old; convert it with onnx.version_converter to opset {OLDEST_OPSET} or newer")
    return opsets


def opset_versions(entries: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Versions by domain, checked for validity."""
    opsets = {plain_domain(entry.domain): entry.version for entry in entries}
    for domain, version in opsets.items():
        if not 0 <= version <= _NEWEST_OPSET:
            raise InputError(f"opset {version} of domain {domain!r} does not exist: the file is damaged")
    return opsets


def plain_domain(domain: str) -> str:
    """ "ai.onnx" is another spelling of the default domain."""
    return "" if domain == "ai.onnx" else domain


def one_line(error: object, longest: int = 500) -> str:
    """The error message of a library, on one line."""
    text = " ".join(str(error).split())
    return text if len(text) <= longest else f"{text[:longest]}..."
