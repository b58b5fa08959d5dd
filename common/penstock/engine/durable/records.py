"""The records of a run, one row for each call of its function."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

STEP, VALUE, SLEEP, VERSION = "step", "value", "sleep", "version"
RUN, MAP, ASK, WAIT_FOR = "run", "map", "ask", "wait_for"
SIGNAL, STATE, GIVEN, END = "signal", "state", "given", "end"
"""Kinds of records that are not calls. `state` is a value of ctx.set, `given` the result that a person gave to a step,
`end` the request that the run ends."""
CHILDREN = frozenset({RUN, MAP, ASK, WAIT_FOR})
"""The kinds of steps that are executions."""
STARTED, COMPLETED, FAILED = "started", "completed", "failed"
CANCELLED, SUPERSEDED = "cancelled", "superseded"
"""Statuses of records: the branch of the call was cancelled, or a later attempt did not make the call."""
TOLD = "told"
"""The status of a write that records only when the result of a row was delivered. No row has this status."""


REPETITION = re.compile(r"(.+):([1-9]\d*)", re.DOTALL)
"""The form of a label that names a repetition of a step."""


class Key(NamedTuple):
    """The key of a step: its name with the branch in front (`2/charge`), and the ordinal among the steps of that name
    (1 for the first)."""

    name: str
    ordinal: int

    def __str__(self) -> str:
        return self.name if self.ordinal == 1 else f"{self.name} ({self.ordinal})"

    @property
    def label(self) -> str:
        """Return the label of the step in commands and pages: `charge`, or `charge:2` for the second step of that name.
        A name that itself ends in this form always has its ordinal: `charge:2:1`."""
        is_plain = self.ordinal == 1 and not REPETITION.fullmatch(self.name)
        return self.name if is_plain else f"{self.name}:{self.ordinal}"

    @classmethod
    def of_label(cls, label: str) -> Key:
        """Return the key for a label. A label without an ordinal means the first step of that name."""
        match = REPETITION.fullmatch(label)
        return cls(match[1], int(match[2])) if match else cls(label, 1)


@dataclass(slots=True)
class Record:
    """One record. `position` is the number of the call in its branch (1 for the first; 0: a call without a position).
    `result` and `error` are JSON; of a sleep that has begun, `result` is `{"until": instant}`. `took` is in seconds.

    Results are numbered in the order of their delivery to the function. `told` is the number of this row's result.
    `asked_after` is the number of the last result that was delivered before the call. `at` is the instant of the last
    write, and `attempt` the attempt that wrote. `unless`: the row is written only if no row has this key; otherwise
    that row is returned."""

    key: Key
    position: int
    kind: str
    status: str
    result: str | None = None
    error: str | None = None
    tries: int = 1
    took: float = 0.0
    asked_after: int = 0
    told: int | None = None
    at: datetime | None = None
    attempt: int = 0
    unless: Key | None = None

    @property
    def final(self) -> bool:
        return self.status in (COMPLETED, FAILED)


@dataclass(slots=True)
class Child:
    """The execution of a step. `result` and `error` are JSON, once it has ended at the instant `at`. `target` is the ref
    that the step named: of an action or a workflow, or of the trigger of a wait. It is None if it is not read."""

    id: UUID
    status: str
    ended: bool
    result: str | None = None
    error: str | None = None
    at: datetime | None = None
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of the attempt before this one: the failed steps that caused it, and the number of that attempt.
    `told` is the number of the last result that was delivered before the failure."""

    causes: tuple[Key, ...]
    told: int
    attempt: int


@dataclass(slots=True)
class History:
    """All that is recorded when an attempt begins. `now` is the database's clock. `ends_as` is the status as which the
    run was asked to end. `failure` is that of the last attempt that failed and was tried again."""

    now: datetime
    records: dict[Key, Record] = field(default_factory=dict)
    children: dict[Key, Child] = field(default_factory=dict)
    ends_as: str | None = None
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ChildStart:
    """A step that is an execution. `target` is the ref of an action or a workflow, with its `parameters`. A map also
    has `items` and `concurrency`. A wait has the filter of its events (`when`, and the values that it names)."""

    record: Record
    target: str
    parameters: Mapping[str, Any]

    @property
    def named(self) -> str:
        """Return the ref that the step named: the target, or the trigger of a wait."""
        return str(self.parameters["trigger"]) if self.record.kind == WAIT_FOR else self.target


def cause_of(record: Record) -> str:
    """Return what ends the wait of a step that is not a signal, as text for people."""
    label = repr(record.key.label)
    if record.kind == STEP:
        return f"attempt {record.tries + 1} of step {label}"
    noun = {ASK: "an answer", WAIT_FOR: "an event", SLEEP: "a timer"}.get(record.kind)
    return f"the end of step {label}" if noun is None else f"{noun} (step {label})"


def cause_of_signal(key: Key) -> str:
    """Return the cause that ends the wait for a signal, as text for people."""
    return f"the signal {key.name.removeprefix(f'{SIGNAL}/')}"


@dataclass(frozen=True, slots=True)
class Awaited:
    """The children, the instant and the signals that a suspended run waits for. `causes` name each of them for people, sorted."""

    children: tuple[UUID, ...] = ()
    until: datetime | None = None
    signals: tuple[Key, ...] = ()
    causes: tuple[str, ...] = field(default=(), compare=False)

    def document(self) -> dict[str, Any]:
        """Return the awaited calls as JSON."""
        return {
            "children": [str(id) for id in self.children],
            "until": None if self.until is None else self.until.isoformat(),
            "signals": [list(key) for key in self.signals],
            "causes": list(self.causes),
        }


def until_json(instant: datetime) -> str:
    return orjson.dumps({"until": instant.isoformat()}).decode()


def instant_of(record: Record) -> datetime:
    assert record.result is not None, "a sleep that has begun"
    return datetime.fromisoformat(orjson.loads(record.result)["until"])
