"""The bounds of all values that come in or are stored. `DOORS` lists each way in, with its bounds; `docs/reference/bounds.md` is
written from it, and the checks use the same numbers.

A value over a bound is refused, or ends what made it, once. Such a value is never tried again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

PAYLOAD_CAP = 256 * 1024
"""The default maximum size of a payload, in bytes of JSON. PENSTOCK_PAYLOAD_CAP sets another one."""
DEPTH_CAP = 100
"""The maximum depth of nested objects and arrays."""
CHECK_STEPS = 600_000
"""The maximum number of steps of one check against a schema. A step is one keyword for one value, and takes at most some 0.3
microseconds. The first check of a process also compiles the schema."""
SCHEMA_CAP = 128 * 1024
"""The maximum size of a schema, in bytes."""
SCHEMA_PARTS_CAP = 10_000
"""The maximum number of schemas inside a schema, at any depth."""
PATTERNS_CAP = 16 * 1024
"""The maximum total length of the patterns of one schema, in characters. Each pattern counts 64 more, for the time to compile
it."""
GROUPS_CAP = 1_000
"""The maximum number of opening parentheses of one pattern, since the time to compile it grows with the square of its groups."""
MAX_ITEMS = 100_000
"""The maximum number of items of a fan-out."""
ITEMS_CAPS = 64
"""The maximum total size of the items of a fan-out as JSON, in multiples of the payload cap. The items are stored as
one list."""
RESULTS_CAPS = 64
"""The maximum total size of a fan-out's results that a workflow reads, in multiples of the payload cap."""
MESSAGE_CAP = 4 * 1024
"""The maximum length of an error's message, in characters. The middle of a longer one is cut out."""
TRACEBACK_CAP = 16 * 1024
"""The maximum length of a traceback, in characters. The middle of a longer one is cut out, since the first and last frames say
most."""

Over = Literal[
    "refused",
    "dead-lettered",
    "fails the attempt",
    "fails the call",
    "fails the enforcement",
    "fails the fire",
    "fails the task",
    "fails the workflow",
    "fails the expression",
    "cut",
]
"""The fate of a value over a bound."""
MEANINGS: Mapping[Over, str] = {
    "refused": "The caller gets InvalidInput, or DefinitionError for a schema. Nothing is stored.",
    "dead-lettered": "The message becomes a dead letter, with the reason.",
    "fails the attempt": "The attempt ends as failed (ResultNotStorable).",
    "fails the call": "The function gets InvalidInput from the call, and may catch it.",
    "fails the enforcement": "No execution starts. The enforcement is kept as failed, with the reason.",
    "fails the fire": "No execution starts. The fire is kept as failed, with the reason.",
    "fails the task": "The task ends as failed, and its workflow goes on by its rules.",
    "fails the workflow": "The workflow ends as failed.",
    "fails the expression": "The expression ends with an error, and so does the task or the output that it belongs to.",
    "cut": "The middle of the text is left out.",
}


@dataclass(frozen=True, slots=True)
class Door:
    """A way by which a value comes in or is stored, and its bounds. A bound of None does not apply there."""

    name: str
    bytes: int
    """Bytes of JSON without spaces. Where `consequence` is "cut", they are characters of a text."""
    consequence: Over
    items: int | None = None
    """Items of a fan-out, or schemas inside a schema."""
    depth: int | None = DEPTH_CAP
    steps: int | None = None
    """Steps of the check against the schema that the entry point has for its values."""
    is_setting: bool = True
    """True if PENSTOCK_PAYLOAD_CAP sets `bytes`; `bytes` is then its default, or a multiple of it."""


DOORS = (
    Door("event on the exchange: its body", PAYLOAD_CAP, "dead-lettered", steps=CHECK_STEPS),
    Door("event by client, API, CLI, webhook, poll: its payload", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("start by client, API, CLI: its parameters", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("answer to an inquiry", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("signal: its value", PAYLOAD_CAP, "refused"),
    Door("set-result: the result", PAYLOAD_CAP, "refused"),
    Door("rule: the parameters that it makes", PAYLOAD_CAP, "fails the enforcement", steps=CHECK_STEPS),
    Door("schedule: its parameters", PAYLOAD_CAP, "fails the fire", steps=CHECK_STEPS),
    Door("task: the parameters that it makes", PAYLOAD_CAP, "fails the task", steps=CHECK_STEPS),
    Door("child of a durable function: its parameters", PAYLOAD_CAP, "fails the call", steps=CHECK_STEPS),
    Door("result of an action, without a result store", PAYLOAD_CAP, "fails the attempt", depth=None),
    Door("output of a workflow", PAYLOAD_CAP, "fails the workflow"),
    Door("vars of a workflow", PAYLOAD_CAP, "fails the workflow"),
    Door("publish of a task", PAYLOAD_CAP, "fails the task"),
    Door("publish of a transition", PAYLOAD_CAP, "fails the workflow"),
    Door("with_items of a task", ITEMS_CAPS * PAYLOAD_CAP, "fails the task", items=MAX_ITEMS),
    Door(
        "results of a fan-out, where an expression reads them",
        RESULTS_CAPS * PAYLOAD_CAP,
        "fails the expression",
        depth=None,
    ),
    Door("error of an attempt: its message", MESSAGE_CAP, "cut", depth=None, is_setting=False),
    Door("error of an attempt: its traceback", TRACEBACK_CAP, "cut", depth=None, is_setting=False),
    Door(
        "schema of a trigger, action or inquiry",
        SCHEMA_CAP,
        "refused",
        items=SCHEMA_PARTS_CAP,
        is_setting=False,
    ),
)
