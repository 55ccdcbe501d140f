"""Devices for the roofline model, from configs/devices.yaml or from a user's file."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from ...core.errors import InputError
from ...core.model.costs import Device
from .strict_json import Fields, suggestion
from .strict_yaml import parse_yaml, read_yaml

_TABLE = "configs/devices.yaml"
_NUMBERS = ("flops_per_second", "bytes_per_second", "launch_seconds")
_SUFFIXES = (".yaml", ".yml")


def device_names() -> tuple[str, ...]:
    """All devices in the table, in its order."""
    return tuple(_table().child("devices").content)


def default_device() -> str:
    """The default device."""
    return _table().text("default")


def get_device(name: str | None = None) -> Device:
    """A device by name or from a YAML file; the default if there is no name."""
    table = _table()
    devices = table.child("devices")
    name = table.text("default") if name is None else name
    if name in devices:
        return _device(devices.child(name), name)
    path = Path(name)
    if path.suffix.lower() in _SUFFIXES:
        fields = _own_file(path)
        return _device(fields, fields.text("name", path.stem))
    raise InputError(
        f"no device {name!r}; choose from {', '.join(devices.content)}, or give a .yaml file{suggestion(name, devices.content)}"
    )


@cache
def _table() -> Fields:
    package = __package__.removesuffix(".io.formats")
    return Fields(parse_yaml(files(f"{package}.configs").joinpath("devices.yaml").read_bytes(), _TABLE), _TABLE)


def _own_file(path: Path) -> Fields:
    document = read_yaml(path)
    return Fields({str(key): found for key, found in document.items()} if isinstance(document, dict) else document, str(path))


def _device(fields: Fields, name: str) -> Device:
    fields.only(("name", *_NUMBERS))
    numbers = Fields({key: _number(found) for key, found in fields.content.items()}, fields.where, fields.path)
    for key in ("flops_per_second", "bytes_per_second"):
        if not 0 < numbers.number(key) < 1e30:
            numbers.fail(key, "must be above 0 and below 1e30")
    launch = numbers.number("launch_seconds") if "launch_seconds" in numbers else 0.0
    if not launch < 1e6:
        numbers.fail("launch_seconds", "must be below 1e6")
    return Device(name, numbers.number("flops_per_second"), numbers.number("bytes_per_second"), launch)


def _number(found: object) -> object:
    """YAML 1.1 parses `1e12` as text, because it has no decimal point; convert it to a number."""
    if isinstance(found, str):
        try:
            return float(found)
        except ValueError:
            return found
    return found
