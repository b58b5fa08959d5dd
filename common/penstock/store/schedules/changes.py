"""Changes of schedules: apply, enable, pause, disable and delete. The lock order is: catalog, then schedule.

A change takes effect at the instant at which it locks the schedule. Fires that were due until then and that no executor
has made yet are recorded first, by the schedule as it was."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson

from penstock.errors import Conflict, DefinitionError, NotFound
from penstock.language.schedules.compiled_schedule import CompiledSchedule, compile_schedule, same_times
from penstock.store.admission import namespaces
from penstock.store.definitions import catalog
from penstock.store.schedules import firing, reading, statements
from penstock.store.schedules.reading import ScheduleState
from penstock.store.schedules.statements import LockedSchedule
from penstock.store.session import clock
from penstock.store.session.database import Session, Transaction


async def put(tx: Transaction, applied: Sequence[tuple[str, int, dict[str, Any]]]) -> None:
    """Store schedules (ref, definition, body), in the transaction that makes these definitions current. A schedule
    that is due at the same instants as before goes on where it was. Otherwise it begins now, and fires of the old
    expression that are already due are recorded first. Raises DefinitionError for a new
    schedule with an instant `at` that is past, or with a rule that has ended."""
    if not applied:
        return
    rows = {row.ref: row for row in await statements.lock(tx, [ref for ref, _, _ in applied])}
    new = [entry for entry in applied if entry[0] not in rows or rows[entry[0]].definition_id != entry[1]]
    compiled = {ref: compile_schedule(body) for ref, _, body in new}
    spaces = {ref: namespaces.of(c.tenant, c.action) for ref, c in compiled.items()}
    places = await namespaces.places(tx, spaces.values())
    now = await clock.now(tx)
    prepared = []
    replaced = []
    for ref, definition, body in new:
        row = rows.get(ref)
        enabled = body.get("enabled", True) if row is None else row.enabled
        goes_on = row is not None and _goes_on(row, compiled[ref])
        since = now if row is None else row.since if goes_on else row.now
        if row is not None and not goes_on:
            replaced.append(row)
        due = compiled[ref].first_after(since) if enabled else None
        if due is None and not goes_on and enabled and (body.get("at") or body.get("rrule")):
            reason = f"{body['at']} is past" if body.get("at") else "its rule has no future instant"
            raise DefinitionError(
                f"schedule {ref} would never fire: {reason}",
                hint="Set a future instant, or remove the schedule. With `enabled: false` the schedule is "
                "kept, and does not fire.",
            )
        prepared.append((ref, definition, places[spaces[ref]], enabled, since, due))
    await firing.fire_before_change(tx, replaced, "changed")
    await statements.put(tx, prepared)


def _goes_on(row: LockedSchedule, compiled: CompiledSchedule) -> bool:
    if not row.enabled:
        return False
    try:
        old = compile_schedule(orjson.loads(row.body))
    except DefinitionError:
        return False
    return row.since > row.now or same_times(old, compiled)  # a paused schedule stays paused


async def enable(tx: Transaction, ref: str) -> ScheduleState:
    """Let a schedule fire again from now on: instants within the pause are not missed. Return its state. Raises
    NotFound if the schedule does not exist."""
    await catalog.set_enabled(tx, "schedule", ref, True)
    row = await _locked(tx, ref)
    if not row.enabled or row.since > row.now:
        due = compile_schedule(orjson.loads(row.body)).first_after(row.now)
        await statements.move(tx, ref, enabled=True, since=row.now, next_due=due)
    return (await reading.listed(tx, ref))[0]


async def disable(tx: Transaction, ref: str) -> ScheduleState:
    """Let a schedule fire nothing until it is enabled again. Running executions go on, and waiting fires are skipped.
    Return its state. Raises NotFound if the schedule does not exist."""
    await catalog.set_enabled(tx, "schedule", ref, False)
    row = await _locked(tx, ref)
    await firing.fire_before_change(tx, [row], "disabled")
    await statements.move(tx, ref, enabled=False, since=row.now, next_due=None)
    await statements.drop_waiting(tx, ref, "the schedule was disabled")
    return (await reading.listed(tx, ref))[0]


async def pause(tx: Transaction, ref: str, seconds: float) -> ScheduleState:
    """Let an enabled schedule fire nothing for `seconds`, and then fire again. Return its state. Raises NotFound if the
    schedule does not exist, and Conflict for a disabled schedule, which the end of the pause would enable."""
    row = await _locked(tx, ref)
    if not row.enabled:
        raise Conflict(
            f"schedule {ref} is disabled, so it cannot be paused",
            hint=f"To enable the schedule first: `penstock schedule enable {ref}`.",
        )
    until = row.now + timedelta(seconds=seconds)
    due = compile_schedule(orjson.loads(row.body)).first_after(until)
    await firing.fire_before_change(tx, [row], "paused")
    await statements.move(tx, ref, enabled=True, since=until, next_due=due)
    return (await reading.listed(tx, ref))[0]


async def delete(tx: Transaction, ref: str) -> None:
    """Delete a schedule. Its fires are kept for their retention, and running executions go on. Raises NotFound if the
    schedule does not exist."""
    await catalog.delete(tx, "schedule", ref)
    row = await _locked(tx, ref)
    await firing.fire_before_change(tx, [row], "deleted")
    await statements.drop_waiting(tx, ref, "the schedule was deleted")
    await statements.delete(tx, ref)


async def _locked(tx: Transaction, ref: str) -> LockedSchedule:
    rows = await statements.lock(tx, [ref])
    if not rows:
        raise await missing(tx, ref)
    return rows[0]


async def missing(db: Session | Transaction, ref: str) -> NotFound:
    """Return the error for a schedule that does not exist."""
    otherwise = "`penstock schedule list` lists the schedules."
    return NotFound(f"no schedule {ref!r}", hint=await catalog.hint(db, ["schedule"], ref, otherwise))
