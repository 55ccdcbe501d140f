"""The session settings with which order and memory of a compiled model are exactly as predicted. Imports nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXACT_SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        "execution_order": "PRIORITY_BASED",
        "graph_optimization_level": "ORT_DISABLE_ALL",
        "enable_mem_pattern": "False",
        "enable_mem_reuse": "False",
        "enable_cpu_mem_arena": "True",
        "session.disable_prepacking": "1",
    }
)
"""Compiled models have these settings in their metadata, as `checkmate.session.<setting>`.

Prepacking is off, because each recomputed node would hold another packed copy of its weights."""
