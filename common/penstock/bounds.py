"""The bounds of all that comes in or is stored: one table, from which checks take their numbers and the docs are written.

What exceeds a bound is refused once, or fails the task that made it; it is never tried again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PAYLOAD_CAP = 256 * 1024
"""Bytes of JSON, where PENSTOCK_PAYLOAD_CAP says nothing else."""
DEPTH_CAP = 100
"""The depth to which objects and arrays may nest."""
CHECK_STEPS = 600_000
"""Steps of one check against a schema. A step is one keyword at one value: some 0.3 microseconds at most. Beside them
the first check of a process compiles the schema."""
SCHEMA_CAP = 128 * 1024
"""Bytes of a schema."""
SCHEMA_PARTS_CAP = 10_000
"""Schemas inside a schema, however deep."""
PATTERNS_CAP = 16 * 1024
"""Characters that all patterns of one schema may have; each counts 64 more, as compiling takes time for each."""
GROUPS_CAP = 1_000
"""Opening parentheses of one pattern: the time that compiling takes grows with the square of its groups."""
MAX_ITEMS = 100_000
"""Items of a fan-out."""
ITEMS_CAPS = 64
"""Payload caps that the items of a fan-out may have together, as JSON: they are stored as one list."""
RESULTS_CAPS = 64
"""Payload caps that the results of the items of a fan-out may have together, where a workflow reads them."""
MESSAGE_CAP = 4 * 1024
"""Characters of an error's message. What is over is cut out of the middle."""
TRACEBACK_CAP = 16 * 1024
"""Characters of a traceback. What is over is cut out of the middle: the first and the last frames tell most."""

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
    """One way by which a value comes in or is stored, and its bounds. None: that bound does not apply."""

    name: str
    bytes: int
    """Bytes of JSON, or characters of a text."""
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
