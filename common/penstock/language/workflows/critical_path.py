"""The critical path of a run: the chain of tasks that determined its duration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from penstock.language.workflows.graph import Graph


class Span(NamedTuple):
    """The time in which a task ran. The end is now for a task that still runs."""

    began_at: datetime
    ended_at: datetime


def critical_path(graph: Graph, spans: Mapping[int, Span], passed: frozenset[int] = frozenset()) -> list[int]:
    """Return the indexes of the critical tasks, from the first to the last. The path is built backward: the task that
    ended last, then the task for which it waited longest, and so on.

    `spans` are those of the tasks that ran. `passed` are tasks that took no time (`noop`, kept ones).
    """
    ends: dict[int, datetime] = {}
    for node in graph.nodes:
        if node.index in spans:
            ends[node.index] = spans[node.index].ended_at
        elif node.index in passed:
            source_ends = [ends[source] for source in node.sources if source in ends]
            if source_ends:
                ends[node.index] = max(source_ends)
    last = max(spans, key=lambda task: (spans[task].ended_at, task), default=None)
    return [] if last is None else list(reversed([*_back(graph, spans, ends, last)]))


def _back(graph: Graph, spans: Mapping[int, Span], ends: Mapping[int, datetime], task: int) -> Iterator[int]:
    while True:
        yield task
        candidates = [source for source in graph[task].sources if source in ends]
        if graph.exit is not None and task == graph.exit.index:
            candidates = [other for other in ends if other != task]
        if task in spans:  # with `join`, a task may have begun before some of its predecessors ended
            candidates = [source for source in candidates if ends[source] <= spans[task].began_at]
        if not candidates:
            return
        task = max(candidates, key=lambda source: (ends[source], source))
