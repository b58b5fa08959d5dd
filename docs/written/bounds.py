"""docs/reference/bounds.md: how much each door takes."""

from __future__ import annotations

from docs.written.fields import cell
from penstock.bounds import (
    CHECK_STEPS,
    DEPTH_CAP,
    DOORS,
    PATTERNS_CAP,
    PAYLOAD_CAP,
    Door,
)

HEAD = f"""# Bounds

This page is written by `docs/written` from `common/penstock/bounds.py`, from which the checks take the same numbers. What exceeds a
bound is refused once, or fails what made it; it is never tried again. Bytes are those of JSON without spaces.

`PENSTOCK_PAYLOAD_CAP` sets the bytes that are marked *cap* ({PAYLOAD_CAP:,} where it says nothing else). Objects and arrays nest {DEPTH_CAP}
levels deep at most. A check of a value against a schema has {CHECK_STEPS:,} steps, some 0.3 seconds of a processor where it was measured, whatever the value and
the schema are; a value that needs more is refused with `CheckTooCostly`. All patterns of a schema have {PATTERNS_CAP:,} characters
together, of which each pattern counts 64 more than it has. The reasons are in [decision 0041](../decisions/0041-checks-under-a-budget.md).

| what comes in, or is stored | bytes | items | depth | steps | over a bound |
|---|---|---|---|---|---|
"""


def page() -> str:
    return HEAD + "".join(map(_row, DOORS))


def _row(door: Door) -> str:
    times = "" if door.bytes == PAYLOAD_CAP else f"{door.bytes // PAYLOAD_CAP} "
    size = f"{times}*cap*" if door.is_setting else f"{door.bytes:,}"
    bounds = [f"{bound:,}" if bound is not None else "" for bound in (door.items, door.depth, door.steps)]
    return f"| {' | '.join(map(cell, (door.name, size, *bounds, door.over)))} |\n"
