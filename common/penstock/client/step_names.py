"""The names by which people call the recorded steps of a durable function."""

from __future__ import annotations

from uuid import UUID

from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import Key
from penstock.store.durable import steps
from penstock.store.session.database import Transaction


async def recorded_step(tx: Transaction, id: UUID, step: str) -> str:
    """Return the recorded name of a step. A signal is called by its own name, unless a step has that name, and is recorded
    with its kind in front. A step that is not recorded keeps the name that it is called by."""
    labels = {Key(record.name, record.ordinal).label for record in await steps.recorded(tx, id)}
    signal = signal_key(step, 1).name
    return signal if step not in labels and signal in labels else step
