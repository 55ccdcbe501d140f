"""Registries name their entries as `.module:name`, so that importing a registry does not import the entries."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def imported(place: str, package: str) -> Any:
    """Import `name` from `module`. With a leading dot the module is relative to the package, otherwise it is absolute."""
    module, name = place.split(":")
    return getattr(import_module(module, package), name)
