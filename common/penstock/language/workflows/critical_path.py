"""The critical path of a run: the chain of tasks that made it take as long as it did."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from penstock.language.workflows.graph import Graph


class Span(NamedTuple):
    """From when to when a task ran. One that still runs ends now."""

    begun: datetime
    ended: datetime


def critical_path(graph: Graph, spans: Mapping[int, Span], passed: frozenset[int] = frozenset()) -> list[int]:
    """Tasks by their index, from the first to the last: the one that ended last, before it the one that it waited for
    longest, and so on. `spans` are those of the tasks that ran; `passed` ran too, in no time (`noop`, kept ones)."""
    ends: dict[int, datetime] = {}
    for node in graph.nodes:
        if node.index in spans:
            ends[node.index] = spans[node.index].ended
        elif node.index in passed:
            source_ends = [ends[source] for source in node.sources if source in ends]
            if source_ends:
                ends[node.index] = max(source_ends)
    last = max(spans, key=lambda task: (spans[task].ended, task), default=None)
    return [] if last is None else list(reversed([*_back(graph, spans, ends, last)]))


def _back(graph: Graph, spans: Mapping[int, Span], ends: Mapping[int, datetime], task: int) -> Iterator[int]:
    while True:
        yield task
        candidates = [source for source in graph[task].sources if source in ends]
        if graph.exit is not None and task == graph.exit.index:
            candidates = [other for other in ends if other != task]
        if task in spans:  # with `join`, it did not wait for those that ended later
            candidates = [source for source in candidates if ends[source] <= spans[task].begun]
        if not candidates:
            return
        task = max(candidates, key=lambda source: (ends[source], source))
