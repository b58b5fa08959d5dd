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
    "ready": _gauge("1 while /ready answers 200, else 0"),
    "database_connections": _gauge("Open connections to PostgreSQL"),
    "database_connections_used": _gauge("Connections to PostgreSQL that are in use"),
    "database_waiting": _gauge("Statements that wait for a free connection to PostgreSQL"),
}

OF_EXECUTORS: Mapping[str, Described] = {
    "batch_seconds": _histogram("The duration of a handler's transaction, commit included", "queue"),
    "batch_items": _histogram(
        "The number of items that a handler's transaction handled. Under load, _sum (items) grows faster "
        "than _count (transactions)",
        "queue",
    ),
    "retries": _counter("Batches of messages that were tried again after a temporary error", "queue"),
    "dead_letters": _counter("Messages that became dead letters", "queue"),
    "events": _counter("Events for which the rules were evaluated", "trigger"),
    "events_matched": _counter("Events that at least one rule matched", "trigger"),
    "rule_errors": _counter(
        "Failed evaluations of rules: the condition or a parameter failed, or the parameters do not fit the action",
        "rule",
    ),
    "window_events": _counter(
        "Events that left the window of a rule, by outcome: matched, expired, answered, full, late or changed",
        "outcome",
    ),
    "relayed": _counter(
        "Staged messages that this executor published, since the process that staged them died or the broker was away"
    ),
    "restaged": _counter(
        "Executions whose message was lost and is sent again, for example after a queue was purged",
        "queue",
    ),
    "processes_lost": _counter(
        "Executors and workers that were declared lost, because their heartbeats stopped"
    ),
    "recovered": _counter("Attempts that were taken back from lost workers"),
    "overdue": _counter(
        "Attempts that an executor ended after their timeout, because their worker had not ended them"
    ),
    "loop_seconds": _histogram(
        "The duration of one turn of a loop. The loops are the files in services/penstock_executor/loops",
        "loop",
    ),
    "loop_failures": _counter("Turns of a loop that failed", "loop"),
}

OF_WORKERS: Mapping[str, Described] = {
    "start_seconds": _histogram(
        "The time from the instant at which an execution is ready until this worker has claimed it", "route"
    ),
    "run_seconds": _histogram("The duration of an attempt, from its start to its end", "action"),
    "attempts": _counter(
        "Ended attempts, by the status of the execution after the attempt. `requested` means that a retry follows",
        "action",
        "status",
    ),
    "action_batch_items": _histogram("The number of items in one call of an action with a batch", "action"),
    "running": _gauge("Attempts that this worker runs"),
    "free_slots": _gauge("Free slots: further attempts that this worker could run"),
    "claims_lost": _counter(
        "Attempts that this worker no longer owned when they ended. Their results were not stored "
        "(worker.claim_lost in the log)"
    ),
    "executor_active": _gauge("Attempts that the task executor runs", "executor"),
    "executor_available": _gauge("Further attempts that the task executor could start now", "executor"),
    "executor_leaked": _gauge("Attempts that the task executor has given up, but that still run", "executor"),
    "executor_average_duration": _gauge("The average duration of ended attempts, in seconds", "executor"),
    "executor_executed": _counter("Ended attempts of the task executor", "executor"),
    "executor_failed": _counter("Attempts of the task executor that failed", "executor"),
    "executor_cancelled": _counter("Attempts of the task executor that were cancelled", "executor"),
}

OF_APIS: Mapping[str, Described] = {
    "standby_read": _gauge("1 while lists are read from the standby"),
    "standby_behind_seconds": _gauge("The maximum age of the lists from the standby, in seconds"),
}

OF_THE_INSTALLATION: Mapping[str, Described] = {
    "waiting": _gauge(
        "Open executions that wait, by cause: limit, worker (all suitable workers are busy), no_worker "
        "(no live worker has the action), executor (an executor has to schedule them), timer, event, human",
        "cause",
    ),
    "held": _gauge("Executions that a hold keeps from starting: `penstock holds` lists the holds"),
    "breakers": _gauge("Breakers that are open, or that release waiting executions", "state"),
    "actions_running": _gauge("Running attempts"),
    "workflows_running": _gauge("Running workflows"),
    "route_ready": _gauge(
        "Executions that only wait for a worker of the route, including those whose action no live worker has",
        "route",
    ),
    "route_oldest_seconds": _gauge(
        "The seconds for which the oldest execution of `route_ready` has waited", "route"
    ),
    "route_running": _gauge("Executions that run on workers of the route", "route"),
    "route_workers": _gauge("Workers that serve the route", "route"),
    "route_slots": _gauge("Attempts that the workers of the route can run at once", "route"),
    "processes": _gauge("Live executors and workers", "kind", "state"),
    "executions_ended": _counter("Ended executions of actions and workflows", "action", "status"),
    "execution_seconds": _histogram(
        "The time from creation to end, waits included, of executions that a client, an event or a schedule started",
        "action",
    ),
    "labelled_executions_ended": _counter(
        "Ended top-level executions, by the labels that the setting `metric_labels` names. The first 100 "
        "values of a label are counted separately, and all others as `other`",
        "key",
        "value",
        "status",
    ),
    "labelled_execution_seconds": _histogram(
        "The time from creation to end, waits included, of the executions in `labelled_executions_ended`",
        "key",
        "value",
    ),
    "outbox_messages": _gauge(
        "Messages in the outbox that are not known to be published. With PostgreSQL as transport: or not handled yet"
    ),
    "outbox_oldest_seconds": _gauge("The age of the oldest message in the outbox, in seconds"),
    "retention_held_rows": _gauge(
        "Rows of `table` past their retention that keep a partition from being dropped, since rows of "
        "`needed_by` refer to them",
        "table",
        "needed_by",
    ),
    "events_waiting": _gauge("Events for which the rules have not been evaluated yet"),
    "ends_waiting": _gauge(
        "Ended executions whose end has not been handled yet: a workflow or another follower has still to be "
        "notified"
    ),
    "dead_letters_kept": _gauge(
        "Dead letters, for the 20 most frequent pairs of queue and reason", "queue", "reason"
    ),
}

OF_ALL_SCHEDULES: Mapping[str, Described] = {
    "schedules_total": _gauge("Schedules"),
    "schedules_active": _gauge("Schedules that have a next fire"),
    "schedules_late": _gauge("Schedules whose fire is overdue by more than 30 s, without those on hold"),
    "schedules_broken": _gauge("Schedules whose next fire cannot be computed"),
    "schedules_erroring": _gauge("Schedules whose latest ended fire failed, timed out or was abandoned"),
    "schedules_orphaned": _gauge(
        "Schedules with an execution that did not start within half an hour, or was lost"
    ),
    "schedule_fires_per_minute": _gauge("Fires per minute, averaged over the last five minutes"),
    "schedule_lag_seconds": _gauge("The maximum delay of a fire in the last five minutes, in seconds"),
    "schedule_failure_rate": _gauge(
        "The share of failures among the ended fires of the last five minutes: the fire failed, "
        "or its execution did not complete"
    ),
    "schedule_run_seconds": _gauge(
        "The average duration of the ended executions of the last five minutes' fires, in seconds"
    ),
}

OF_FIRES: Mapping[str, Described] = {
    "schedule_fires_created": _counter("Fires that started an execution"),
    "schedule_fires_queued": _counter(
        "Fires that wait, under the overlap policy `queue`, until the previous execution has ended"
    ),
    "schedule_fires_skipped": _counter("Fires that were skipped under their overlap policy"),
    "schedule_fires_failed": _counter("Fires whose execution could not be started"),
    "schedule_fires_missed": _counter("Missed fires that were not caught up on"),
    "schedule_recoveries": _counter("Executions of fires that were created again because they were lost"),
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
