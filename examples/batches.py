"""Readings of sensors, stored many at a time: a file is opened once for all executions that share a call.

penstock dev --module examples/batches.py
penstock run readings.store_all readings='[{"sensor": "attic", "celsius": 21.5}, {"sensor": "shed", "celsius": 4}]' --wait
"""

from __future__ import annotations

import os
import shelve
from dataclasses import asdict, dataclass
from typing import Any

from penstock import Batch, Item, NonRetryable, Pack, action, item, task, workflow

pack = Pack("readings")
FILE = "READINGS"
"""The variable that names the file of the readings."""


@dataclass
class Reading:
    sensor: str
    celsius: float


@action(batch=Batch(500, within="100ms"), retry={"max_attempts": 5}, timeout="30s")
def store(items: list[Item[Reading]]) -> list[str | Exception]:
    """Store the readings. An impossible one fails alone. If the file cannot be written, a retry stores all of them.

    The execution's id is the key of a reading. So an item that runs again after a lost worker stores nothing twice."""
    with shelve.open(os.environ.get(FILE, "readings")) as readings:
        for reading in items:
            if is_possible(reading.input.celsius):
                readings[reading.idempotency_token] = asdict(reading.input)
    return [
        reading.idempotency_token
        if is_possible(reading.input.celsius)
        else NonRetryable(f"{reading.input.celsius} °C is impossible")
        for reading in items
    ]


def is_possible(celsius: float) -> bool:
    return -90 <= celsius <= 60


@workflow
def store_all(readings: list[dict[str, Any]]) -> Any:
    return task(store, {"sensor": item.sensor, "celsius": item.celsius}, with_items=readings)
