"""The step from due instants to fires with executions. If the parameters cannot be rendered, the fire is stored as
failed, so that an operator sees it."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias
from uuid import UUID

import asyncpg
import orjson

from penstock import tracing
from penstock.errors import DefinitionError, ExpressionError, InvalidInput, KeysChanged
from penstock.language.expressions import SECRETS
from penstock.language.moves.fires import CREATED, FAILED, SKIPPED
from penstock.language.rules.secret_references import checked_parameters
from penstock.language.schedules.compiled_schedule import CompiledSchedule, compile_schedule
from penstock.language.schedules.fire_kinds import BACKFILL, DUE, EARLIER_TOO, MISSED
from penstock.language.schemas import Schema
from penstock.run.cut_texts import cut_end
from penstock.store.definitions import catalog
from penstock.store.schedules import statements
from penstock.store.schedules.statements import DueSchedule, FiredUpTo, LockedSchedule, LostFire, NewFire
from penstock.store.session.database import Transaction, is_transient
from penstock.store.session.postgres_errors import in_our_words
from penstock.tracing.spans import execution_span

MOST = 1_000
"""The maximum number of fires of one transaction. The remaining schedules stay due."""
NAMED = 50
"""The number of skipped fires of one schedule that are recorded at once. After a long outage there may be thousands."""
ASIDE = 300.0
"""Seconds until a schedule that could not be planned is tried again."""


Schedule: TypeAlias = DueSchedule | LockedSchedule | LostFire
"""A row from which fires are built: it has `ref`, `definition_id`, `namespace_id`, and the database's instant `now`."""


@dataclass(slots=True)
class Fired:
    """The outcome of firing a batch: the number of fires by status, and the largest delay of a fire in time (`lag`,
    seconds)."""

    counts: dict[str, int] = field(default_factory=dict)
    schedules: int = 0
    missed: int = 0
    lag: float = 0.0


async def fire_due(tx: Transaction, limit: int, ref: str | None = None) -> Fired:
    """Fire due schedules, at most `limit` (or only `ref`), as many as fit into one transaction."""
    rows = await statements.lock_due(tx, limit, ref)
    fired = Fired(schedules=len(rows))
    if not rows:
        return fired
    builder = await FireBuilder.load(tx, rows)
    now: datetime = rows[0].now
    positions: list[FiredUpTo] = []
    fires: list[NewFire] = []
    for row in rows:
        if len(fires) >= MOST:
            break
        position, planned = _planned(builder, row, now)
        positions.append(position)
        fires += planned
        in_time = [f.due_at for f in planned if f.kind == DUE]
        fired.missed += len(planned) - len(in_time)
        fired.lag = max(fired.lag, *((now - due).total_seconds() for due in in_time), 0.0)
    fired.counts = await statements.fire(tx, positions, fires)
    return fired


async def fire_before_change(tx: Transaction, rows: Sequence[LockedSchedule], change: str) -> None:
    """Record the fires of these locked schedules that are due and not recorded yet, before the caller changes the
    schedules. `change` says how, such as "paused".

    An executor in time would have made these fires, so they are made as a late executor makes them, by the present
    definitions. Those that cannot be made now are recorded as skipped: fires of a held schedule, fires that the
    database refuses, and those that are left after MOST. A schedule that cannot be planned has no known instants."""
    due = [row for row in rows if row.next_due is not None and (row.next_due <= row.now or row.put_aside)]
    if not due:
        return
    builder = await FireBuilder.load(tx, due)
    room = MOST
    for row in due:
        try:
            compiled = builder.compiled(row.definition_id)
        except DefinitionError:
            continue
        since, obstacle = row.since, f"more than {MOST:,} fires were due"
        if row.held:
            obstacle = "its action was held"
        elif row.put_aside:
            obstacle = "it could not be fired"
        elif room > 0:
            position, fires = _planned(builder, row, row.now)
            refusal = await _refusal(tx, position, fires)
            if refusal is None:
                room -= len(fires)
                since = position.since or since
            else:
                obstacle = f"it could not be fired: {refusal}"
        reason = f"not made before the schedule was {change}, since {obstacle}"
        unmade = compiled.latest(since, row.now, NAMED + 1)
        skipped = [builder.skipped(row, instant, reason) for instant in unmade[-NAMED:]]
        if len(unmade) > NAMED:
            skipped[0] = skipped[0]._replace(error=f"{reason}{EARLIER_TOO}")
        if skipped:
            await statements.fire(tx, [FiredUpTo(row.ref, None, None, None)], skipped)


async def _refusal(tx: Transaction, position: FiredUpTo, fires: Sequence[NewFire]) -> str | None:
    """Record fires. Return the reason if the database refuses them: then none of them is recorded, and the transaction
    goes on, since a faulty schedule must not refuse to be disabled."""
    await tx.execute("savepoint fires")
    try:
        await statements.fire(tx, [position], fires)
    except asyncpg.PostgresError as error:
        if is_transient(error) or isinstance(in_our_words(error, may_seal=tx.codec is not None), KeysChanged):
            raise
        await tx.execute("rollback to savepoint fires")
        return cut_end(str(error), 200)
    await tx.execute("release savepoint fires")
    return None


def _planned(
    builder: FireBuilder, row: DueSchedule | LockedSchedule, now: datetime
) -> tuple[FiredUpTo, list[NewFire]]:
    """Return the instant up to which a due schedule is fired now, and its fires."""
    try:
        compiled = builder.compiled(row.definition_id)
    except DefinitionError as error:
        # For instance a time zone that this machine does not know. Another replica, or a later version, may know it.
        return FiredUpTo(row.ref, row.since, builder.later(now), error.message), []
    plan = compiled.plan(row.since, now)
    skipped = plan.skipped[-NAMED:]
    unnamed = plan.more_skipped or len(plan.skipped) > NAMED
    fires = [
        builder.skipped(row, due, f"missed{EARLIER_TOO}" if unnamed and due == skipped[0] else "missed")
        for due in skipped
    ]
    for fire in plan.fires:
        starts = fire.run_at if fire.run_at > now else None
        fires.append(builder.fire(row, fire.due, MISSED if fire.missed else DUE, not_before=starts))
    since = max([row.since, *skipped, *(fire.due for fire in plan.fires)])
    return FiredUpTo(row.ref, since, plan.next_due, None), fires


class FireBuilder:
    """A builder of rows of fires, for schedules with definitions and actions that it has looked up."""

    def __init__(
        self,
        cache: dict[Any, Any],
        schedules: Mapping[int, CompiledSchedule | DefinitionError],
        actions: Mapping[str, int],
        schemas: Mapping[int, Schema],
        now: datetime,
        payload_cap: int,
    ) -> None:
        self._cache = cache
        self._schedules = schedules
        self._payload_cap = payload_cap
        self._actions = actions
        self._schemas = schemas
        self._ids = ids_at(now)

    @classmethod
    async def load(cls, tx: Transaction, rows: Sequence[Schedule]) -> FireBuilder:
        """Load a builder for rows with a `definition_id` that were read at the database's instant `now`."""
        schedules = await catalog.compiled(tx, "schedule", {row.definition_id for row in rows}, _compiled)
        actions = await statements.actions(
            tx, {c.action for c in schedules.values() if isinstance(c, CompiledSchedule)}
        )
        schemas = await catalog.parameter_schemas(tx, actions.values())
        return cls(tx.cache, schedules, actions, schemas, rows[0].now, tx.settings.payload_cap)

    def compiled(self, definition: int) -> CompiledSchedule:
        """Return a compiled schedule. Raises DefinitionError if its definition has an error."""
        entry = self._schedules[definition]
        if isinstance(entry, DefinitionError):
            raise entry
        return entry

    @staticmethod
    def later(now: datetime) -> datetime:
        return datetime.fromtimestamp(now.timestamp() + ASIDE, now.tzinfo)

    def skipped(self, row: Schedule, due: datetime, reason: str) -> NewFire:
        nothing = (None,) * 7
        return NewFire(row.ref, due, MISSED, SKIPPED, "allow", row.definition_id, *nothing, reason)

    def fire(
        self,
        row: Schedule,
        due: datetime,
        kind: str,
        *,
        not_before: datetime | None = None,
        recovery: bool = False,
        overlap: str | None = None,
    ) -> NewFire:
        """Return a fire of the schedule of `row` (ref, definition_id, namespace_id), with its execution."""
        compiled = self.compiled(row.definition_id)
        context = context_of(compiled, due, kind, recovery=recovery)
        action = self._actions.get(compiled.action)
        params, error = self._params(compiled, row.definition_id, action, context)
        options = {"context": context, **compiled.options}
        id = next(self._ids)
        traced = tracing.begins(compiled.action, execution_span(id))
        origin = {"schedule": row.ref, "due": due, "kind": kind, **({"trace": traced} if traced else {})}
        return NewFire(
            schedule=row.ref,
            due_at=due,
            kind=kind,
            status=CREATED if error is None else FAILED,
            overlap=overlap or compiled.overlap,
            definition_id=row.definition_id,
            id=id,
            namespace_id=row.namespace_id,
            action_id=action,
            not_before=not_before,
            params=params,
            options=orjson.dumps(options).decode(),
            origin=orjson.dumps(origin).decode(),
            error=error,
        )

    def _params(
        self, compiled: CompiledSchedule, definition: int, action: int | None, context: Mapping[str, Any]
    ) -> tuple[str | None, str | None]:
        """Return the parameters as JSON, or the reason why the action does not accept them."""
        if action is None:
            return None, f"NotFound: {compiled.action} is not registered, or is retired"
        key = ("schedule.params", definition, action)
        if compiled.constant and key in self._cache:
            cached: tuple[str | None, str | None] = self._cache[key]
            return cached
        try:
            params = compiled.params({**context, "context": context, "secrets": SECRETS})
            answer = checked_parameters(self._schemas[action], params, self._payload_cap).decode(), None
        except (ExpressionError, InvalidInput, DefinitionError) as error:
            return None, f"{type(error).__name__}: {error.message}"
        if compiled.constant:
            self._cache[key] = answer
        return answer


def context_of(compiled: CompiledSchedule, due: datetime, kind: str, *, recovery: bool) -> dict[str, Any]:
    """Return the values that templates of the parameters, and the run, can read: the schedule's own context,
    overridden by the reserved keys. `scheduled_time` is ISO 8601 with the offset of the schedule's zone."""
    return {
        **compiled.context,
        "schedule": compiled.ref,
        "scheduled_time": compiled.local(due),
        "timezone": compiled.spec.zone,
        "expression": compiled.spec.text,
        "is_recovery": recovery,
        "is_missed": kind == MISSED,
        "is_backfill": kind == BACKFILL,
    }


def _compiled(body: dict[str, Any]) -> CompiledSchedule | DefinitionError:
    """Return the compiled schedule of a definition, or the error of its definition."""
    try:
        return compile_schedule(body)
    except DefinitionError as error:
        return error


def ids_at(now: datetime) -> Iterator[UUID]:
    """Yield UUIDv7s (RFC 9562) of the database's instant `now`, in order: the clock of this machine may be wrong."""
    random = int.from_bytes(os.urandom(10), "big")
    start = (int(now.timestamp() * 1000) << 80) | (7 << 76) | ((random >> 62 & 0xFFF) << 64) | (2 << 62)
    tail = random & ((1 << 61) - 1)  # from half of the range, so that counting on never overflows
    for n in itertools.count(tail):
        yield UUID(int=start | n)
