"""`--config file.yaml`: option values by name, for all commands or in a section per command. A misspelt key is an error.

budget: 8GB
time-limit: 5m
compare:
  time-limit: 30s
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import InputError
from ...core.spelling import suggestion

if TYPE_CHECKING:
    from .command import Command, Option


def read_config(path: str, command: str, commands: Mapping[str, Command]) -> dict[str, Any]:
    """The values for one command, by parameter name, in the form click takes; flags and variables override them."""
    content = _load(path)
    options = {name: {option.long_name: option for option in found.own_options} for name, found in commands.items()}
    everything = {key: option for known in options.values() for key, option in known.items()}
    chosen: dict[str, Any] = {}
    section: dict[str, Any] = {}
    for key, value in content.items():
        if key in commands:
            section_values = _mapping(value, f"{path}: section {key!r}")
            checked = {
                name: option_value(path, f"{key}: {name}", _known(path, name, options[key], key), given)
                for name, given in section_values.items()
            }
            if key == command:
                section = checked
        else:
            option = _known(path, key, everything, "")
            checked_value = option_value(path, key, option, value)
            if key in options[command]:
                chosen[key] = checked_value
    return {str(options[command][key].name): value for key, value in (chosen | section).items()}


def _load(path: str) -> dict[str, Any]:
    from ...io.formats.strict_yaml import read_yaml

    content = read_yaml(Path(path))
    return {} if content is None else _mapping(content, path)


def _mapping(content: Any, where: str) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise InputError(f"{where}: expected lines of 'option: value', found {_kind(content)}")
    return {str(key).replace("_", "-"): value for key, value in content.items()}


def _known(path: str, key: str, options: Mapping[str, Option], section: str) -> Option:
    if key in options and key != "config":
        return options[key]
    within = f" in section {section!r}" if section else ""
    raise InputError(f"{path}: unknown key {key!r}{within}{suggestion(key, list(options)) or '; keys are the long names of options'}")


def option_value(path: str, key: str, option: Option, value: Any) -> Any:
    """Converts numbers, booleans and lists from YAML to what click would get from the command line."""
    if value is None:
        raise InputError(f"{path}: {key!r} has no value; write one, or remove the line")
    if option.is_flag:
        if not isinstance(value, bool):
            raise InputError(f"{path}: {key!r} is a flag: write true or false, not {_kind(value)}")
        return value
    if isinstance(value, dict):
        if not option.multiple:
            raise InputError(f"{path}: {key!r} takes one value, not {_kind(value)}")
        return [f"{name}={_scalar(path, key, entry)}" for name, entry in value.items()]
    if isinstance(value, list):
        entries = [_scalar(path, key, entry) for entry in value]
        if option.multiple:
            return entries
        if getattr(option.type, "takes_lists", False):
            return ",".join(entries)
        raise InputError(f"{path}: {key!r} takes one value, not {_kind(value)}")
    return [_scalar(path, key, value)] if option.multiple else _scalar(path, key, value)


def _scalar(path: str, key: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise InputError(f"{path}: {key!r} takes text or a number, not {_kind(value)}")
    return str(value)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    names = {dict: "a mapping", list: "a list", type(None): "nothing", str: f"the text {value!r:.40}"}
    return names.get(type(value), f"{value!r:.40}")
