"""Figures about the whole installation for /metrics, as of the last measurement: every replica shows the same. Take
their `max`, not their `sum`, over replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from penstock.language.moves import CANCELING, QUEUED, REQUESTED, RUNNING, SCHEDULED, WAITING
from penstock.messaging.metrics import counter, gauge, histogram
from penstock.service.assembly import Parts
from penstock.store.outbox.queues import WORK
from penstock.store.upkeep.figures import BUCKETS, OTHER, Figures, Took, Work

ACTIONS = 200
"""Actions that have numbers of their own. Others are added up as `other`, since each label costs Prometheus memory."""
LINES = {"limit": "limit", "regroup": "limit", "worker": "no_worker"}
"""The cause of waiting, by the gate of a lane."""


@dataclass(slots=True, eq=False)
class InstallationCollector(Collector):
    """A collector of `figures` for readers of /metrics. The loop `measure_work` renews them."""

    figures: Figures = field(default_factory=Figures)
    label_keys: Sequence[str] = ()
    """The labels of which figures are shown: `metric_labels` of the settings."""
    held_rows: dict[tuple[str, ...], float] = field(default_factory=dict)
    """Rows past their retention, by their table and the table that refers to them. The loop `drop_expired` renews them."""

    def collect(self) -> Iterable[Metric]:
        if self.figures.processes:  # without processes nothing was measured yet
            yield from _waiting(self.figures)
            yield from _routes(self.figures)
            yield from _messages(self.figures)
            yield from _ends(self.figures)
            if self.label_keys:
                yield from _labelled(self.figures, self.label_keys)
            yield gauge("retention_held_rows", self.held_rows)


def shown(parts: Parts) -> InstallationCollector:
    """Return the collector of the replica."""
    collector: InstallationCollector = parts.database.cache.setdefault(
        "installation.metrics", InstallationCollector()
    )
    return collector


def _waiting(of: Figures) -> Iterable[Metric]:
    counts = dict.fromkeys(("limit", "worker", "no_worker", "executor", "timer", "event", "human"), 0)
    for work in of.work:
        cause = waits_for(work)
        if cause is not None:
            counts[cause] += work.count
    for line in of.lines:
        counts[LINES[line.gate]] += line.count
    counts["timer"] -= min(of.held, counts["timer"])  # a held execution waits for no instant
    yield _gauge("waiting", counts)
    yield gauge("held", {(): of.held})
    yield gauge("breakers", {("open",): of.breakers_open, ("releasing",): of.breakers_releasing})
    for kind in ("action", "workflow"):
        running = sum(
            work.count for work in of.work if work.kind == kind and work.status in (RUNNING, CANCELING)
        )
        yield gauge(f"{kind}s_running", {(): running})


def waits_for(work: Work) -> str | None:
    """Return the cause for which open executions wait, other than a limit; None if they run."""
    if work.status == WAITING:
        return "event" if work.kind == "wait" else "human"
    if work.status == REQUESTED:
        return "timer" if work.delayed else "executor"
    return "worker" if work.status == SCHEDULED else None


def _routes(of: Figures) -> Iterable[Metric]:
    work_by_route = [
        (row.queue.removeprefix(WORK), row)
        for row in of.work
        if row.kind == "action" and row.queue is not None
    ]
    # Each figure has each route: in PromQL, a sum of two figures is empty if one of them is missing.
    routes = sorted({crew.route for crew in of.crews} | {route for route, _ in work_by_route})
    ready, running, oldest = dict.fromkeys(routes, 0), dict.fromkeys(routes, 0), dict.fromkeys(routes, 0.0)
    for route, work in work_by_route:
        if work.status in (SCHEDULED, QUEUED):
            ready[route] += work.count
            oldest[route] = max(oldest[route], work.oldest)
        elif work.status in (RUNNING, CANCELING):
            running[route] += work.count
    slots = {**dict.fromkeys(routes, 0), **{crew.route: crew.slots for crew in of.crews}}
    workers = {**dict.fromkeys(routes, 0), **{crew.route: crew.workers for crew in of.crews}}
    yield _gauge("route_ready", ready)
    yield _gauge("route_running", running)
    yield _gauge("route_oldest_seconds", oldest)
    yield _gauge("route_workers", workers)
    yield _gauge("route_slots", slots)
    yield gauge("processes", {(row.kind, row.state): row.count for row in of.processes})


def _messages(of: Figures) -> Iterable[Metric]:
    yield gauge("outbox_messages", {(): of.outbox_messages})
    yield gauge("outbox_oldest_seconds", {(): of.outbox_oldest})
    yield gauge("events_waiting", {(): of.unmatched_events})
    yield gauge("ends_waiting", {(): of.untold_ends})
    yield gauge("dead_letters_kept", {(row.queue, row.reason): row.count for row in of.letters})


def _ends(of: Figures) -> Iterable[Metric]:
    total: dict[str, int] = {}
    for row in of.ended:
        total[row.action] = total.get(row.action, 0) + row.count
    named = set(sorted(total, key=lambda action: -total[action])[:ACTIONS])
    counts: dict[tuple[str, ...], float] = {}
    for row in of.ended:
        of_both = (row.action if row.action in named else OTHER, row.status)
        counts[of_both] = counts.get(of_both, 0) + row.count
    yield counter("executions_ended", counts)
    durations = histogram("execution_seconds")
    for action, times in of.took.items():
        if action in named:
            durations.add_metric([action], _buckets(times), times.seconds)
    yield durations


def _buckets(times: Took) -> list[tuple[str, int]]:
    """Return the bounds of the buckets, each with the number of durations up to it."""
    edges = [*(f"{edge:g}" for edge in BUCKETS), "+Inf"]
    return list(zip(edges, accumulate(times.counts), strict=True))


def _labelled(of: Figures, keys: Sequence[str]) -> Iterable[Metric]:
    """Yield the figures of labels. The value `other` stands for all further values, and for a label of that value."""
    counts: dict[tuple[str, ...], float] = {}
    times_of: dict[tuple[str, str], Took] = {}
    for row in of.labelled:
        if row.key not in keys:
            continue
        named = (row.key, OTHER if row.value is None else row.value)
        for status, count in row.counts.items():
            counts[(*named, status)] = counts.get((*named, status), 0) + count
        times = times_of.setdefault(named, Took([0] * len(row.durations.counts), 0.0))
        times.counts = [sum(both) for both in zip(times.counts, row.durations.counts, strict=True)]
        times.seconds += row.durations.seconds
    yield counter("labelled_executions_ended", counts)
    durations = histogram("labelled_execution_seconds")
    for named, times in times_of.items():
        durations.add_metric(list(named), _buckets(times), times.seconds)
    yield durations


def _gauge(name: str, values: Mapping[str, float]) -> Metric:
    """Return a gauge with one label."""
    return gauge(name, {(value,): number for value, number in values.items()})
