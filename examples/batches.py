"""Readings of sensors, stored many at a time: one transaction of SQLite for all executions that share a call.

penstock dev --module examples/batches.py
penstock run readings.store_all readings='[{"sensor": "attic", "celsius": 21.5}, {"sensor": "shed", "celsius": 4}]' --wait
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from penstock import Batch, Item, NonRetryable, Pack, action, item, task, workflow

pack = Pack("readings")
DATABASE = "READINGS"
"""The variable that names the file of the database."""


@dataclass
class Reading:
    sensor: str
    celsius: float


@action(batch=Batch(500, within="100ms"), retry={"max_attempts": 5}, timeout="30s")
def store(items: list[Item[Reading]]) -> list[str | Exception]:
    """Store the readings in one transaction. An impossible one fails alone. If the database is busy, all are stored by a retry.

    The execution's id is the key of a row. So an item that runs again after a lost worker stores nothing twice."""
    rows = [
        (reading.idempotency_token, reading.input.sensor, reading.input.celsius)
        for reading in items
        if is_possible(reading.input.celsius)
    ]
    with closing(sqlite3.connect(os.environ.get(DATABASE, "readings.db"))) as database, database:
        database.execute(
            "create table if not exists reading (id text primary key, sensor text, celsius real)"
        )
        database.executemany("insert or ignore into reading values (?, ?, ?)", rows)
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
