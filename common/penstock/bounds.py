"""The bounds of all values that come in or are stored. The checks and the documentation use this one table.

A value over a bound is refused once, or fails the task that made it. It is never tried again.
"""

from __future__ import annotations

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
"""The maximum total size of the items of a fan-out as JSON, in multiples of the payload cap. They are stored as one list."""
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
    "fails the task",
    "fails the workflow",
    "fails what reads it",
    "cut",
]


@dataclass(frozen=True, slots=True)
class Door:
    """An entry point at which values come in or are stored, with its bounds. None: that bound does not apply."""

    name: str
    bytes: int
    """The maximum size, in bytes of JSON or characters of a text."""
    over: Over
    """The fate of a value over a bound."""
    items: int | None = None
    depth: int | None = DEPTH_CAP
    steps: int | None = None
    is_setting: bool = True
    """True if PENSTOCK_PAYLOAD_CAP sets `bytes`; `bytes` is then its default, or a multiple of it."""


DOORS = (
    Door("event on the exchange: its body", PAYLOAD_CAP, "dead-lettered", steps=CHECK_STEPS),
    Door("event by client, API, CLI, webhook, poll: its payload", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("start by client, API, CLI: its parameters", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("answer to an inquiry", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("signal: its value", PAYLOAD_CAP, "refused"),
    Door("set-result: the result", PAYLOAD_CAP, "refused"),
    Door("rule: the parameters that it makes", PAYLOAD_CAP, "refused", steps=CHECK_STEPS),
    Door("task: the parameters that it makes", PAYLOAD_CAP, "fails the task", steps=CHECK_STEPS),
    Door("result of an action, without a result store", PAYLOAD_CAP, "fails the attempt", depth=None),
    Door("output of a workflow", PAYLOAD_CAP, "fails the workflow"),
    Door("vars of a workflow", PAYLOAD_CAP, "fails the workflow"),
    Door("publish of a task", PAYLOAD_CAP, "fails the task"),
    Door("publish of a transition", PAYLOAD_CAP, "fails the workflow"),
    Door("with_items of a task", ITEMS_CAPS * PAYLOAD_CAP, "fails the task", items=MAX_ITEMS),
    Door(
        "results of a fan-out, where an expression reads them",
        RESULTS_CAPS * PAYLOAD_CAP,
        "fails what reads it",
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
