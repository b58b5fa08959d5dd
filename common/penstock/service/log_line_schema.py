"""The schema of log lines: every field that a line of a service may have. docs/reference/logs.md is generated from
it, and a test checks every call of a logger against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Field(NamedTuple):
    type: type
    description: str


ALWAYS: Mapping[str, Field] = {
    "event": Field(str, "the name of what happened, as `part.what`; for a line of a library: its text"),
    "level": Field(str, "`debug`, `info`, `warning`, `error` or `critical`"),
    "timestamp": Field(str, "ISO 8601, UTC"),
    "service": Field(str, "the service that logs the line: `executor`, `worker`, `api` or `dev`"),
    "replica": Field(str, "the name of the process (PENSTOCK_NAME)"),
}
OF_THE_PROCESS: Mapping[str, Field] = {
    "replica_id": Field(
        str, "the id of the process, new at each start, as in `penstock workers list --json`"
    ),
    "runner_name": Field(str, "the display name of the process (PENSTOCK_RUNNER_NAME), if it has one"),
    "logger": Field(str, "for a line of a library: its logger"),
    "exception": Field(str, "a traceback"),
}
OF_A_RUN: Mapping[str, Field] = {
    "execution_id": Field(str, "the execution"),
    "attempt": Field(int, "the number of the attempt, from 1"),
    "action": Field(str, "the ref of the action"),
    "trace_id": Field(str, "the id of the [trace](traces.md), if the execution is traced"),
}
"""Fields of lines about an execution. They are added automatically to all lines that are logged while an action runs."""
OF_AN_EVENT: Mapping[str, Field] = {
    "access": Field(str, "PENSTOCK_API_ACCESS"),
    "actions": Field(int, "the number of actions that the worker has"),
    "address": Field(str, "the network address of a caller"),
    "age_seconds": Field(float, "the seconds since the last heartbeat of the process"),
    "by": Field(str, "the name of a token"),
    "count": Field(int, "the number of cases since the previous line"),
    "definition_id": Field(int, "the id of a version of an action or workflow"),
    "differences": Field(list, "the differences between schemas of a worker and those of the definitions"),
    "events": Field(int, "the number of events"),
    "executions": Field(int, "the number of executions or events"),
    "failures": Field(int, "the number of failures in a row"),
    "file": Field(str, "the path of a file that was written"),
    "fires": Field(int, "the number of fires of schedules"),
    "head": Field(str, "the newest position and seal of the audit"),
    "health": Field(int, "the port of /live, /ready and /metrics"),
    "hint": Field(str, "what to do next"),
    "host": Field(str, "the address of the API"),
    "instance": Field(str, "the id of a problem that the API returned"),
    "item_id": Field(str, "the id of the event or execution that a message names"),
    "job": Field(str, "the name of a Kubernetes job, a Dask task or a Ray actor"),
    "labels": Field(str, "the labels of the worker"),
    "loop": Field(str, "the name of a loop of the executor"),
    "message_id": Field(str, "the id of a message"),
    "messages": Field(int, "the number of messages"),
    "name": Field(str, "the name of a process, a user or a subscription"),
    "next_try": Field(str, "the time of the next try"),
    "part": Field(str, "the name of a part of the process"),
    "partition": Field(str, "the name of a partition of a table"),
    "port": Field(int, "the port of /live, /ready and /metrics; for the API, the port of its requests"),
    "process_id": Field(str, "the id of another process"),
    "purpose": Field(str, "the purpose of a connection"),
    "queue": Field(str, "the name of a queue, without the prefix"),
    "queues": Field(list, "several"),
    "reason": Field(str, "the reason, as text for people"),
    "recovered": Field(int, "the number of executions that were taken back from the process"),
    "route": Field(str, "the name of a route"),
    "routes": Field(list, "several"),
    "rows": Field(int, "the number of rows"),
    "schedule": Field(str, "the ref of a schedule"),
    "seconds": Field(float, "a duration or a difference of clocks, in seconds"),
    "gateways": Field(list, "the addresses of the gateways that a worker calls"),
    "server": Field(str, "the address of a gateway"),
    "statuses": Field(dict, "the number of fires, by status"),
    "times": Field(int, "the number of tries so far"),
    "transport": Field(str, "`rabbitmq` or `postgres`"),
    "trigger": Field(str, "the ref of a trigger"),
    "what": Field(str, "the call that failed"),
    "worker_id": Field(str, "the id of the worker"),
    "worker": Field(str, "the name of a worker that calls a gateway"),
    "sdk": Field(str, "the library of a worker that calls a gateway"),
}
FIELDS: Mapping[str, Field] = {**ALWAYS, **OF_THE_PROCESS, **OF_A_RUN, **OF_AN_EVENT}


def violations(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the differences of a line, parsed from its JSON, from the schema."""
    yield from (f"{name} is missing" for name in ALWAYS if name not in line)
    for name, value in line.items():
        if name not in FIELDS:
            yield f"{name} is not a field"
        elif value is not None and not isinstance(value, _types(FIELDS[name].type)):
            yield f"{name} is {value!r}, and no {FIELDS[name].type.__name__}"


def _types(kind: type) -> tuple[type, ...]:
    return (int, float) if kind is float else (kind,)
