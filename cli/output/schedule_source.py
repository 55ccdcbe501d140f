"""Open one schedule file, or two of the same graph."""

from __future__ import annotations

from ...api.schedule_file import Schedule, checked, graph_of, held_graph, read_content
from ...core.errors import InputError
from ..options.shared import ScheduleGraph


def open_schedule(source: str, stated: ScheduleGraph) -> Schedule:
    """Read a schedule and its graph, and verify it."""
    if source == "-" and stated.source == "-":
        raise InputError("SCHEDULE and --graph cannot both be - (stdin)")
    content = read_content(source)
    return checked(content, graph_of(content, stated.load()))


def open_pair(first: str, second: str, stated: ScheduleGraph) -> tuple[Schedule, Schedule]:
    """Two schedules of one graph; if only one file contains the graph, it is used for both."""
    if [first, second, stated.source].count("-") > 1:
        raise InputError("only one of the two schedules and --graph can be - (stdin)")
    contents = [read_content(source) for source in (first, second)]
    if stated.source is not None:
        graph = graph_of(contents[0], stated.load())
    else:
        graph = next((found for content in contents if (found := held_graph(content)) is not None), None) or graph_of(contents[0])
    one, other = (checked(content, graph) for content in contents)
    return one, other
