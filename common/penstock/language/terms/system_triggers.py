"""System triggers: the events that Penstock itself writes where a rule asks for them, each with the schema of its payload.

The functions `raise_*` of `migrations/functions/events` write the payloads. docs/reference/system-events.md is made from this
module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

PREFIX = "penstock."
"""The beginning of each system trigger. No trigger of a user begins so."""
VERSION = 1
"""The version of the payloads. A release that renames or removes a field, or changes its meaning, has a higher one. A new
field does not change it."""

FAILED = "penstock.execution.failed"
LATE = "penstock.execution.late"
STUCK = "penstock.execution.stuck"
WORKER_LOST = "penstock.worker.lost"
SCHEDULE_MISSED = "penstock.schedule.missed"
INQUIRY_OPENED = "penstock.inquiry.opened"
BREAKER_OPENED = "penstock.breaker.opened"
BUDGET_SPENT = "penstock.budget.spent"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a payload: its JSON type, and its meaning. An `optional` field may be null. `fields` are those of an
    object."""

    type: str
    meaning: str
    optional: bool = False
    fields: Mapping[str, Field] | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the field."""
        schema: dict[str, Any] = {
            "type": [self.type, "null"] if self.optional else self.type,
            "description": self.meaning,
        }
        if self.fields is not None:
            schema["properties"] = {name: field.schema() for name, field in self.fields.items()}
            schema["additionalProperties"] = False
        return schema


@dataclass(frozen=True, slots=True)
class SystemTrigger:
    """A system trigger: the move at which its event is written, and the fields of the payload."""

    ref: str
    description: str
    fields: Mapping[str, Field]

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the payload."""
        return {
            "type": "object",
            "properties": {name: field.schema() for name, field in self.fields.items()},
            "required": list(self.fields),
            "additionalProperties": False,
        }


_VERSION = Field("integer", f"The version of this payload: {VERSION}.")
_TENANT = Field("string", "The tenant of the event.")
_PATH = Field("string", "The path of its page, below the address of the API.")

_EXECUTION = {
    "version": _VERSION,
    "execution": Field("string", "The id of the execution."),
    "status": Field("string", "Its status when the event was written."),
    "action": Field("string", "The ref of its action or workflow."),
    "pack": Field("string", "The pack of that action or workflow."),
    "tenant": _TENANT,
    "namespace": Field("string", "Its namespace, `tenant::pack::workflow::task` or `tenant::pack::action`."),
    "parent": Field(
        "string",
        "The execution of the workflow that contains it. Null: it is the root of its tree.",
        optional=True,
    ),
    "root": Field("string", "The outermost execution of its tree, or the execution itself."),
    "task": Field("string", "The name of its task in the workflow.", optional=True),
    "item": Field("integer", "The index of its item, if its task has items.", optional=True),
    "attempt": Field("integer", "The number of attempts that have begun."),
    "reason": Field("string", "The reason of its last status change.", optional=True),
    "error": Field(
        "object",
        "The error of its last attempt, masked as in all outputs.",
        optional=True,
        fields={
            "type": Field(
                "string", "The kind of the error, such as `ValueError` or `timeout`.", optional=True
            ),
            "message": Field("string", "Its text.", optional=True),
        },
    ),
    "labels": Field("object", "Its labels."),
    "title": Field("string", "Its title, if its action has one.", optional=True),
    "created_at": Field("string", "The instant at which it was requested, ISO 8601 in UTC."),
    "started_at": Field("string", "The instant at which its first attempt began.", optional=True),
    "ended_at": Field("string", "The instant at which it ended.", optional=True),
    "path": _PATH,
}

_TRIGGERS = (
    SystemTrigger(
        FAILED,
        "An execution has ended as failed, timeout or abandoned. No event is written for an attempt that is tried again.",
        _EXECUTION,
    ),
    SystemTrigger(
        LATE,
        "An execution has not ended within `warn_after` of its first start. The event is written once for each run.",
        {**_EXECUTION, "warn_after": Field("number", "The time that was allowed, in seconds.")},
    ),
    SystemTrigger(
        STUCK,
        "An execution waits, and for the time of PENSTOCK_STUCK_AFTER no live worker could run it. The "
        "event is written once for each run.",
        {
            **_EXECUTION,
            "route": Field("string", "The route on which no worker has its action."),
            "waits_since": Field("string", "The instant at which the wait began."),
        },
    ),
    SystemTrigger(
        WORKER_LOST,
        "A worker was lost, or left before its attempts had ended, and these attempts were taken back. "
        "Each tenant of such an attempt gets an event.",
        {
            "version": _VERSION,
            "worker": Field("string", "The id of the worker."),
            "name": Field("string", "Its name."),
            "reason": Field("string", "The reason why the worker counts as lost."),
            "routes": Field("array", "Its routes."),
            "labels": Field("object", "Its labels."),
            "tenant": _TENANT,
            "count": Field("integer", "The number of attempts of this tenant that were taken back."),
            "executions": Field("array", "The ids of their executions, at most 100."),
            "lost_at": Field("string", "The instant at which the loss was detected."),
            "path": _PATH,
        },
    ),
    SystemTrigger(
        SCHEDULE_MISSED,
        "A fire was missed, and was skipped under the policy for missed fires. There is an event for each "
        "recorded fire of this kind.",
        {
            "version": _VERSION,
            "schedule": Field("string", "The ref of the schedule."),
            "action": Field("string", "The ref of its action or workflow."),
            "tenant": _TENANT,
            "due_at": Field("string", "The instant at which the fire was due."),
            "reason": Field("string", "The recorded reason of the skip."),
            "path": _PATH,
        },
    ),
    SystemTrigger(
        INQUIRY_OPENED,
        "An execution has asked a question, and waits for the answer.",
        {
            **_EXECUTION,
            "prompt": Field("string", "The question."),
            "assignee": Field("string", "The person that may answer.", optional=True),
            "due_at": Field("string", "The instant until which an answer is accepted.", optional=True),
        },
    ),
    SystemTrigger(
        BREAKER_OPENED,
        "A breaker has opened after failed calls. Each tenant of the last failed calls gets an event. No "
        "event is written for a breaker that was opened by hand, or for a failed probe.",
        {
            "version": _VERSION,
            "breaker": Field("string", "The ref of the breaker."),
            "scope": Field("string", "The action or the namespace that the breaker covers."),
            "group": Field("string", "The values of the parameters in `by`, if the breaker has this option."),
            "tenant": _TENANT,
            "execution": Field("string", "The execution whose call failed last."),
            "failed": Field("integer", "The number of failed calls."),
            "attempts": Field("integer", "The number of calls among which the failures were counted."),
            "opened_at": Field("string", "The instant at which it opened."),
            "probe_at": Field("string", "The instant of the next probe.", optional=True),
            "path": _PATH,
        },
    ),
    SystemTrigger(
        BUDGET_SPENT,
        "An execution needs more than is left of the budget of its tree, and no running attempt can "
        "return a part of its reservation. The event is written once for each unit of a tree.",
        {
            "version": _VERSION,
            "root": Field("string", "The root of the tree."),
            "unit": Field("string", "The unit of the budget."),
            "amount": Field("number", "The amount of the budget."),
            "left": Field("number", "The amount that is left."),
            "needed": Field("number", "The amount that the execution needs."),
            "when_spent": Field("string", "The reaction to a spent budget: `refuse` or `wait`."),
            "tenant": _TENANT,
            "execution": Field("string", "The execution that needs more than is left."),
            "action": Field("string", "The ref of its action."),
            "path": _PATH,
        },
    ),
)
SYSTEM_TRIGGERS: Mapping[str, SystemTrigger] = {trigger.ref: trigger for trigger in _TRIGGERS}
"""All system triggers by ref."""
OF_EXECUTIONS = frozenset(ref for ref, trigger in SYSTEM_TRIGGERS.items() if "title" in trigger.fields)
"""The system triggers with the payload of an execution, to which an executor adds its title and its first start."""

HINT_PUBLISH = "Penstock alone writes events of penstock.*: publish a trigger of your own pack."


def is_system(ref: object) -> bool:
    """Return whether a ref is reserved for system triggers, known or not."""
    return isinstance(ref, str) and ref.startswith(PREFIX)


def hint() -> str:
    """Return a hint that lists all system triggers."""
    return f"Available: {', '.join(SYSTEM_TRIGGERS)}."


def schemas() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each system trigger with the schema of its payload."""
    for ref, trigger in SYSTEM_TRIGGERS.items():
        yield ref, trigger.schema()
