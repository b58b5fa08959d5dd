"""The schema of log lines: every field that a line of a service may have. docs/reference/logs.md is generated from
it, and a test checks every call of a logger against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Field(NamedTuple):
    type: type
    description: str


ALWAYS: Mapping[str, Field] = {
    "event": Field(str, "what happened, as `part.what`; of a library's line, what it said"),
    "level": Field(str, "`debug`, `info`, `warning`, `error` or `critical`"),
    "timestamp": Field(str, "ISO 8601, UTC"),
    "service": Field(str, "`executor`, `worker`, `api` or `dev`: what logs it"),
    "replica": Field(str, "the name of the process (PENSTOCK_NAME)"),
}
OF_THE_PROCESS: Mapping[str, Field] = {
    "replica_id": Field(str, "its id, random for each start: as in `penstock workers list --json`"),
    "runner_name": Field(str, "its name for people (PENSTOCK_RUNNER_NAME), where it has one"),
    "logger": Field(str, "of a library's line: its logger"),
    "exception": Field(str, "a traceback"),
}
OF_A_RUN: Mapping[str, Field] = {
    "execution_id": Field(str, "the execution"),
    "attempt": Field(int, "its attempt, from 1"),
    "action": Field(str, "the ref of the action"),
    "trace_id": Field(str, "the [trace](traces.md) that it belongs to, if it is traced"),
}
"""Fields of lines about an execution. They are added automatically to all lines that are logged while an action runs."""
OF_AN_EVENT: Mapping[str, Field] = {
    "access": Field(str, "PENSTOCK_API_ACCESS"),
    "actions": Field(int, "how many actions the worker runs"),
    "address": Field(str, "where a request came from"),
    "age_seconds": Field(float, "seconds since its last heartbeat"),
    "by": Field(str, "a token"),
    "count": Field(int, "how many times since the line before"),
    "definition_id": Field(int, "a version of an action or workflow"),
    "differences": Field(list, "the differences between schemas of a worker and those of the definitions"),
    "events": Field(int, "how many events"),
    "executions": Field(int, "how many executions or events"),
    "failures": Field(int, "how many times in a row"),
    "file": Field(str, "a file that was written"),
    "fires": Field(int, "how many fires of schedules"),
    "head": Field(str, "the newest position and seal of the audit"),
    "health": Field(int, "the port of /live, /ready and /metrics"),
    "hint": Field(str, "what to do next"),
    "host": Field(str, "the address of the API"),
    "instance": Field(str, "the id of a problem that the API answered with"),
    "item_id": Field(str, "an event or execution, of a message"),
    "job": Field(str, "a job of Kubernetes, a task of Dask, an actor of Ray"),
    "labels": Field(str, "what the worker has"),
    "loop": Field(str, "a loop of the executor"),
    "message_id": Field(str, "a message"),
    "messages": Field(int, "how many messages"),
    "name": Field(str, "of a process, a person or a subscription"),
    "next_try": Field(str, "when it is tried again"),
    "part": Field(str, "a part of the process"),
    "partition": Field(str, "a partition of a table"),
    "port": Field(int, "the port of /live, /ready and /metrics; of the API, its own"),
    "process_id": Field(str, "the id of another process"),
    "purpose": Field(str, "what a connection is for"),
    "queue": Field(str, "a queue, without the prefix"),
    "queues": Field(list, "several"),
    "reason": Field(str, "why: for people"),
    "recovered": Field(int, "how many executions were taken back from it"),
    "route": Field(str, "a route"),
    "routes": Field(list, "several"),
    "rows": Field(int, "how many rows"),
    "schedule": Field(str, "the ref of a schedule"),
    "seconds": Field(float, "how long, or by how much"),
    "gateways": Field(list, "the addresses of the gateways that a worker calls"),
    "server": Field(str, "the address of a gateway"),
    "statuses": Field(dict, "how many of each status"),
    "times": Field(int, "how many times it was tried"),
    "transport": Field(str, "`rabbitmq` or `postgres`"),
    "trigger": Field(str, "the ref of a trigger"),
    "what": Field(str, "what was tried"),
    "worker_id": Field(str, "its id"),
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
