"""All metrics of the services: the kind, the labels and the description of each. /metrics and
docs/reference/metrics.md read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Described:
    kind: Literal["counter", "gauge", "histogram"]
    description: str
    labels: tuple[str, ...] = ()


def _counter(text: str, *labels: str) -> Described:
    return Described("counter", text, labels)


def _gauge(text: str, *labels: str) -> Described:
    return Described("gauge", text, labels)


def _histogram(text: str, *labels: str) -> Described:
    return Described("histogram", text, labels)


OF_ALL: Mapping[str, Described] = {
    "ready": _gauge("1 while messages are really consumed"),
    "database_connections": _gauge("Connections to PostgreSQL that are open"),
    "database_connections_used": _gauge("Those of them that are in use"),
    "database_waiting": _gauge("Statements that wait for a connection"),
}

OF_EXECUTORS: Mapping[str, Described] = {
    "batch_seconds": _histogram("A handler's transaction, with its commit", "queue"),
    "batch_items": _histogram(
        "Items of a handler's transaction: _sum is what was handled, and grows faster than _count under load",
        "queue",
    ),
    "retries": _counter("Batches tried again after a fault that passes", "queue"),
    "dead_letters": _counter("Messages given up on", "queue"),
    "events": _counter("Events that were held against the rules", "trigger"),
    "events_matched": _counter("Those of them that at least one rule took up", "trigger"),
    "rule_errors": _counter(
        "Rules that failed on an event: their condition, a parameter, or what their action takes", "rule"
    ),
    "window_events": _counter(
        "Events that left the windows of rules: matched, expired, answered, full, late or changed", "outcome"
    ),
    "relayed": _counter(
        "Messages that were staged and not known to be published, and were sent by another process"
    ),
    "restaged": _counter(
        "Executions whose message was nowhere, and is sent again: a queue was purged, or the broker lost its disk",
        "queue",
    ),
    "processes_lost": _counter("Services that ended without a word"),
    "recovered": _counter("Attempts that were taken back from them"),
    "overdue": _counter("Attempts past their time that their worker should have ended"),
    "loop_seconds": _histogram(
        "A turn of a loop, which is named after its file in services/penstock_executor/loops", "loop"
    ),
    "loop_failures": _counter("Turns of a loop that failed", "loop"),
}

OF_WORKERS: Mapping[str, Described] = {
    "start_seconds": _histogram(
        "From ready to claimed by this worker: what work waits for a worker, with all hops", "route"
    ),
    "run_seconds": _histogram("An attempt, from its start to its end", "action"),
    "attempts": _counter(
        "Attempts ended, by the status that they led to; requested is a retry", "action", "status"
    ),
    "action_batch_items": _histogram("Items of one call of an action with a batch", "action"),
    "running": _gauge("Attempts that run now"),
    "free_slots": _gauge("Attempts that would fit beside them"),
    "claims_lost": _counter(
        "Attempts that were taken away: their result was refused, or not even reported (worker.claim_lost in the log)"
    ),
    "executor_active": _gauge("Attempts that a task executor runs now", "executor"),
    "executor_available": _gauge("How many more it would start now", "executor"),
    "executor_leaked": _gauge("Attempts that it gave up on and that still run", "executor"),
    "executor_average_duration": _gauge("Seconds that an ended attempt took", "executor"),
    "executor_executed": _counter("Attempts that it ended", "executor"),
    "executor_failed": _counter("Of those, how many failed", "executor"),
    "executor_cancelled": _counter("Of those, how many were cancelled from outside", "executor"),
}

OF_APIS: Mapping[str, Described] = {
    "standby_read": _gauge("1 while lists are read from the standby"),
    "standby_behind_seconds": _gauge("How old they are at the most"),
}

OF_THE_INSTALLATION: Mapping[str, Described] = {
    "waiting": _gauge(
        "Open executions that wait, by what for: limit, worker (a free one on their route), no_worker (no live one has their "
        "action), executor (to be scheduled), timer (an instant), event, human",
        "cause",
    ),
    "held": _gauge("Executions that a hold keeps from starting: `penstock holds` lists the holds"),
    "breakers": _gauge("Breakers that are not closed: open, or releasing what waited", "state"),
    "actions_running": _gauge("Attempts that run"),
    "workflows_running": _gauge("Workflows that are under way"),
    "route_ready": _gauge(
        "Executions that only a free worker is missing for: on their route, or in line where no live worker has their action",
        "route",
    ),
    "route_oldest_seconds": _gauge("What the first of them has waited", "route"),
    "route_running": _gauge("Executions that the route's workers run", "route"),
    "route_workers": _gauge("Workers that serve the route", "route"),
    "route_slots": _gauge("What they can run at once", "route"),
    "processes": _gauge("Services that live", "kind", "state"),
    "executions_ended": _counter(
        "Executions ended, of actions and workflows, whoever ended them", "action", "status"
    ),
    "execution_seconds": _histogram(
        "From creation to end, waits included, of what a client, an event or a schedule started", "action"
    ),
    "labelled_executions_ended": _counter(
        "Executions without a parent that ended, by the labels in the setting `metric_labels`. A label has figures for its "
        "first 100 values, and the rest is added up as `other`",
        "key",
        "value",
        "status",
    ),
    "labelled_execution_seconds": _histogram(
        "From creation to end, waits included, of the executions in `labelled_executions_ended`",
        "key",
        "value",
    ),
    "outbox_messages": _gauge(
        "Messages staged and not known to be published (PostgreSQL as transport: or handled)"
    ),
    "outbox_oldest_seconds": _gauge("Age of the oldest of them"),
    "retention_held_rows": _gauge(
        "Rows that are past their retention, and keep the partition of their day from being dropped: stored work in the table "
        "`needed_by` refers to them",
        "table",
        "needed_by",
    ),
    "events_waiting": _gauge("Events whose rules nobody has looked at yet"),
    "ends_waiting": _gauge("Ends whose followers nobody has told yet"),
    "dead_letters_kept": _gauge("Dead letters, of the 20 most frequent kinds", "queue", "reason"),
}

OF_ALL_SCHEDULES: Mapping[str, Described] = {
    "schedules_total": _gauge("Schedules"),
    "schedules_active": _gauge("Those that have a next fire"),
    "schedules_late": _gauge("Those that have been due for 30 s and are not held"),
    "schedules_broken": _gauge("Those that cannot be planned"),
    "schedules_erroring": _gauge("Those whose latest run did not end well"),
    "schedules_orphaned": _gauge("Those with a run that did not start for half an hour, or is gone"),
    "schedule_fires_per_minute": _gauge("Fires a minute, in the last five"),
    "schedule_lag_seconds": _gauge("The most that a fire was late by, in the last five minutes"),
    "schedule_failure_rate": _gauge(
        "Share of ended runs that did not end well, of the last five minutes' fires"
    ),
    "schedule_run_seconds": _gauge("What an ended run took, of the last five minutes' fires"),
}

OF_FIRES: Mapping[str, Described] = {
    "schedule_fires_created": _counter("Fires that started an execution"),
    "schedule_fires_queued": _counter(
        "Fires that wait, as their overlap policy says, for the run before them to end"
    ),
    "schedule_fires_skipped": _counter("Fires that their overlap policy skipped"),
    "schedule_fires_failed": _counter("Fires whose execution could not be made"),
    "schedule_fires_missed": _counter("Fires that no executor was there for, and that were not made up for"),
    "schedule_recoveries": _counter("Runs that were replaced because their execution was nowhere"),
}

METRICS: Mapping[str, Described] = {
    **OF_ALL,
    **OF_EXECUTORS,
    **OF_WORKERS,
    **OF_APIS,
    **OF_THE_INSTALLATION,
    **OF_ALL_SCHEDULES,
    **OF_FIRES,
}
"""All metrics, by name without `penstock_` and, for counters, without `_total`."""
