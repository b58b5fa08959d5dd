"""docs/reference/bounds.md: how much each door takes."""

from __future__ import annotations

from docs.written.fields import cell
from penstock.bounds import (
    CHECK_STEPS,
    DOORS,
    GROUPS_CAP,
    MEANINGS,
    PATTERNS_CAP,
    PAYLOAD_CAP,
    Door,
)

HEAD = f"""# Bounds

This page lists each way by which a value comes into Penstock or is stored there, and how large the value may be. It is written from
`common/penstock/bounds.py`, whose numbers the checks use.

- **bytes** is the size of the value as JSON without spaces. *cap* is the setting `PENSTOCK_PAYLOAD_CAP` ({PAYLOAD_CAP:,} bytes by default),
  and *64 cap* is 64 times as much. Messages and tracebacks are counted in characters.
- **items** is the number of items of a fan-out. For a schema, it is the number of schemas inside it.
- **depth** is the number of objects and arrays inside one another.
- **steps** is the number of steps of the check against a schema. Each keyword that is applied to a value is a step. In our measurement,
  {CHECK_STEPS:,} steps took at most 0.3 seconds of a processor. A value that needs more is refused with [CheckTooCostly](errors/CheckTooCostly.md).
- An empty cell is a bound that does not apply.

| a value | bytes | items | depth | steps | over a bound |
|---|---|---|---|---|---|
"""
FOOT = f"""
All patterns of a schema together have at most {PATTERNS_CAP:,} characters. Each pattern counts with 64 additional characters. One
pattern has at most {GROUPS_CAP:,} groups. [Decision 0041](../decisions/0041-checks-under-a-budget.md) has the reasons.

## A value over a bound

Penstock never tries again to store such a value.

| over a bound | what happens |
|---|---|
"""


def page() -> str:
    meanings = "".join(f"| {over} | {meaning} |\n" for over, meaning in MEANINGS.items())
    return HEAD + "".join(map(_row, DOORS)) + FOOT + meanings


def _row(door: Door) -> str:
    times = "" if door.bytes == PAYLOAD_CAP else f"{door.bytes // PAYLOAD_CAP} "
    size = f"{times}*cap*" if door.is_setting else f"{door.bytes:,}"
    bounds = [f"{bound:,}" if bound is not None else "" for bound in (door.items, door.depth, door.steps)]
    return f"| {' | '.join(map(cell, (door.name, size, *bounds, door.consequence)))} |\n"
