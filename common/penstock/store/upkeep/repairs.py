"""Repairs of violated invariants. Each one checks again under the locks, and leaves alone rows that are right by
then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.store.session.database import Transaction

REPAIRS: Mapping[str, str] = {
    "I2": "mend_owners",
    "I3s": "mend_slots",
    "I5": "mend_gates",
    "I5w": "mend_lines",
    "I7": "mend_enforcements",
    "I10a": "mend_forgotten",
    "I10b": "mend_live",
    "I10c": "mend_outcomes",
    "I10d": "mend_orphans",
    "I10e": "mend_silent",
    "I10f": "mend_finished",
    "I10g": "mend_suspended",
    "I11": "mend_steps",
}
"""The function of the database that repairs the violations of an invariant."""


async def repair(tx: Transaction, invariant: str, ids: Sequence[str]) -> None:
    """Repair the rows with these ids: executions, workflows or lanes, as the query of the invariant returned them."""
    await tx.stage(f"select {REPAIRS[invariant]}($1::uuid[]) as messages", list(ids))
