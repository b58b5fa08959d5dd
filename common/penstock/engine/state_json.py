"""The state of a run as it is written down: plain JSON, and back."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import orjson

from penstock.engine.kept import Kept
from penstock.engine.state import Fan, Head, Record

_RECORD = {field.name: field for field in fields(Record)}
_DEFAULT = Record()


def head_json(head: Head) -> str:
    return orjson.dumps(
        {
            "left": head.left,
            "open": head.open,
            "unhandled": head.unhandled,
            "phase": head.phase,
            "paused": head.paused,
            "due": list(head.due),
            "faults": head.faults,
            "outcome": head.outcome,
            "stops": head.stops,
        }
    ).decode()


def read_head(text: str) -> Head:
    given = orjson.loads(text)
    outcome = given.pop("outcome")
    return Head(
        **{**given, "due": deque(given["due"])}, outcome=None if outcome is None else (outcome[0], outcome[1])
    )


def record_json(record: Record) -> str:
    """Without what has its default value: most records are small."""
    written: dict[str, Any] = {}
    for name in _RECORD:
        value = getattr(record, name)
        if value == getattr(_DEFAULT, name):
            continue
        if name == "fan":
            value = {field.name: getattr(value, field.name) for field in fields(Fan)}
            value["settled"] = bytes(value["settled"]).hex()
        elif name == "kept":
            value = {field.name: getattr(value, field.name) for field in fields(Kept)}
            value["items"] = bytes(value["items"]).hex()
        elif name == "named":
            value = [[task, outcome] for task, outcome in value.items()]
        written[name] = value
    return orjson.dumps(written).decode()


def read_record(text: str) -> Record:
    given: Mapping[str, Any] = orjson.loads(text)
    read = dict(given)
    if "fan" in read:
        read["fan"] = Fan(**{**read["fan"], "settled": bytearray.fromhex(read["fan"]["settled"])})
    if "kept" in read:
        read["kept"] = Kept(**{**read["kept"], "items": bytes.fromhex(read["kept"]["items"])})
    if "named" in read:
        read["named"] = dict(read["named"])
    return Record(**read)


def failing(record: Record) -> bool:
    """Whether it failed and nobody handled it (what `Needed.failures` asks for)."""
    return record.final and not record.handled and record.status not in ("completed", "skipped")
