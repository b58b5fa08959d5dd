"""Fires that a user requests: one at this instant, or those of a past range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

import orjson
from pydantic import Field

from penstock.errors import InvalidInput
from penstock.language.moves.fires import FAILED, SKIPPED
from penstock.language.schedules.compiled_schedule import TICK, CompiledSchedule, compile_schedule
from penstock.language.schedules.fire_kinds import BACKFILL, MANUAL
from penstock.store.schedules import reading, statements
from penstock.store.schedules.changes import missing
from penstock.store.schedules.firing import FireBuilder
from penstock.store.schedules.statements import FiredUpTo
from penstock.store.session.database import Session, Transaction

MOST = 10_000
"""The maximum number of fires of one backfill."""
STEP = 500
"""Fires that one statement or transaction handles."""


@dataclass(frozen=True, slots=True)
class BackfillFire:
    """A fire of a backfill."""

    due: Annotated[datetime, Field(description="The instant at which the fire was due.")]
    status: Annotated[
        str | None,
        Field(
            description="The present status of the fire; null if the schedule has not fired for this instant."
        ),
    ]
    starts: Annotated[
        bool, Field(description="True: the backfill starts it, or would start it without `dry_run`.")
    ]


async def range_of(session: Session, ref: str, first: datetime, last: datetime) -> list[BackfillFire]:
    """Return the fires of a backfill from `first` to `last`, both included. Future fires are left to the schedule. Raises
    NotFound if the schedule does not exist, and InvalidInput if there are more than MOST or the range ends before it
    begins."""
    if last < first:
        raise InvalidInput(
            f"this range ends before it begins: {first.isoformat()} to {last.isoformat()}",
            hint="Exchange the two times.",
        )
    row = next(iter(await reading.listed(session, ref)), None)
    if row is None:
        raise await missing(session, ref)
    compiled = compile_schedule(orjson.loads(row.body))
    dues = _dues(compiled, first, min(last, row.now))
    existing: dict[datetime, str] = {}
    for start in range(0, len(dues), STEP):
        existing |= await reading.known(session, ref, dues[start : start + STEP])
    return [
        BackfillFire(due, existing.get(due), existing.get(due) in (None, SKIPPED, FAILED)) for due in dues
    ]


def _dues(compiled: CompiledSchedule, first: datetime, last: datetime) -> list[datetime]:
    policy = compiled.policy
    first = max(first, policy.starts_at) if policy.starts_at else first
    last = min(last, policy.ends_at) if policy.ends_at else last
    dues = compiled.spec.between(first - TICK, last, MOST + 1)
    if len(dues) > MOST:
        raise InvalidInput(
            f"{compiled.ref} has more than {MOST} fires in this range",
            hint=f"Split the range. The first part can end at {dues[MOST - 1].isoformat()}.",
        )
    return dues


async def backfill(tx: Transaction, ref: str, dues: Sequence[datetime]) -> dict[str, int]:
    """Start the fires of these past instants that have no execution: all at once under the overlap policy `allow`, one
    after another under the other policies. Return the number of created, queued and failed fires. Raises NotFound if
    the schedule does not exist."""
    row = next(iter(await statements.lock(tx, [ref])), None)
    if row is None:
        raise await missing(tx, ref)
    builder = await FireBuilder.load(tx, [row])
    overlap = "allow" if builder.compiled(row.definition_id).overlap == "allow" else "queue"
    fires = [builder.fire(row, due, BACKFILL, overlap=overlap) for due in dues]
    return await statements.fire(tx, [FiredUpTo(ref, None, None, None)], fires)


async def run(tx: Transaction, ref: str) -> tuple[datetime, dict[str, int]]:
    """Fire a schedule at this instant, enabled or not, under its overlap policy. Return the instant and the fires by
    status. Raises NotFound if the schedule does not exist."""
    row = next(iter(await statements.lock(tx, [ref])), None)
    if row is None:
        raise await missing(tx, ref)
    builder = await FireBuilder.load(tx, [row])
    now: datetime = row.now
    counts = await statements.fire(tx, [FiredUpTo(ref, None, None, None)], [builder.fire(row, now, MANUAL)])
    return now, counts
