"""The operations on schedules, for the client and the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import orjson

from penstock.client.checked_arguments import checks_arguments
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.definitions import Schedule
from penstock.language.definitions.declaration import declare
from penstock.language.loading import Definitions
from penstock.language.schedules import Preview
from penstock.language.schedules.compiled_schedule import TICK, CompiledSchedule, compile_schedule
from penstock.language.terms.sources import Source
from penstock.messaging import broadcast
from penstock.messaging.outbox import Publisher
from penstock.messaging.transports import Transport
from penstock.operate.apply import Change, register
from penstock.store.schedules import backfill, changes, health, reading
from penstock.store.schedules.backfill import BackfillFire
from penstock.store.schedules.reading import Fire, FireStats, ScheduleState
from penstock.store.session.database import Session, Transaction, backoff

T = TypeVar("T")
WHEN = ("cron", "every", "at", "rrule")
"""Options of which a schedule has one: another one replaces it."""


@checks_arguments
class Schedules:
    """The schedules of an installation: each is a `penstock.store.schedules.reading.ScheduleState`. Every method that
    is given the ref of one raises NotFound where there is none."""

    def __init__(self, session: Session, publisher: Publisher) -> None:
        self._session = session
        self._publisher = publisher

    async def all(self) -> list[ScheduleState]:
        """All of them, by ref."""
        return await reading.listed(self._session)

    async def get(self, ref: str) -> ScheduleState:
        rows = await reading.listed(self._session, ref)
        if not rows:
            raise await changes.missing(self._session, ref)
        return rows[0]

    async def put(self, *declared: Schedule) -> list[Change]:
        """Make schedules, or change them, as `penstock apply` would; says of each whether it is new, changed or
        unchanged. Raises DefinitionError, for an unknown action too."""
        done = await register(self._session, Definitions(declared))
        await wake(self._publisher.transport)
        return done

    async def create(self, ref: str, options: Mapping[str, Any]) -> Change:
        """Make a schedule with the options of `Schedule`. Raises Conflict if there is one, InvalidInput, DefinitionError."""
        if await reading.listed(self._session, ref):
            hint = f"Change it with `penstock schedule update {ref} ...`."
            raise Conflict(f"there is a schedule {ref}", hint=hint)
        if "action" not in options:
            raise InvalidInput("a schedule needs an action", hint="`penstock actions` lists them.")
        return await self._declare({"ref": ref, **options})

    async def update(self, ref: str, options: Mapping[str, Any]) -> Change:
        """Change what is given of a schedule; the rest stays. Raises NotFound, InvalidInput, DefinitionError."""
        try:
            body = orjson.loads((await self.get(ref)).body)
        except NotFound as error:
            error.hint = f"Make it with `penstock schedule create {ref} ...`."
            raise
        if "enabled" in options:
            raise InvalidInput(
                "whether it is enabled is said apart", hint=f"penstock schedule disable {ref} (or enable)"
            )
        if any(name in options for name in WHEN):
            body = {name: value for name, value in body.items() if name not in WHEN}
        if "missed" in options:
            options = {**options, "missed": {**body.get("missed", {}), **options["missed"]}}
        return await self._declare({**body, **options})

    async def _declare(self, body: Mapping[str, Any]) -> Change:
        [change] = await self.put(declare(Schedule, dict(body), Source("schedule", 0)))
        return change

    async def preview(self, ref: str, count: int = 10) -> list[Preview]:
        """The next fires, as if it were enabled, with what the clocks of its zone do to them."""
        row = await self.get(ref)
        compiled = compile_schedule(orjson.loads(row.body))
        return upcoming(compiled, max(row.since, row.now), count)

    async def enable(self, ref: str) -> ScheduleState:
        """Let it fire again, from now on. What fell into the pause is not made up for; see `backfill`."""
        return await self._change(lambda tx: changes.enable(tx, ref), wakes=True)

    async def disable(self, ref: str) -> ScheduleState:
        """Let it fire nothing until it is enabled again. Runs go on; fires that wait are skipped."""
        return await self._change(lambda tx: changes.disable(tx, ref))

    async def pause(self, ref: str, seconds: float) -> ScheduleState:
        """Let it fire nothing for so long, and then again by itself."""
        return await self._change(lambda tx: changes.pause(tx, ref, seconds), wakes=True)

    async def delete(self, ref: str) -> None:
        """Remove it. Its fires stay in the history until their retention ends, and its runs go on."""
        await self._change(lambda tx: changes.delete(tx, ref))

    async def run(self, ref: str) -> Fire:
        """Fire it now, enabled or not, under its overlap policy. Returns the fire, as `history` does."""
        due, _ = await self._change(lambda tx: backfill.run(tx, ref))
        return next(row for row in await reading.history(self._session, ref, 20) if row.due_at == due)

    async def backfill(
        self, ref: str, first: datetime, last: datetime, *, dry_run: bool = False
    ) -> list[BackfillFire]:
        """Start the fires from `first` to `last` (aware datetimes, both included) that have no execution; all at once,
        or one after another where the overlap policy is not `allow`. Returns all fires of the range, with what they
        were before and whether this starts them. Raises InvalidInput for a range with more than 10,000."""
        fires = await backfill.range_of(self._session, ref, first, last)
        dues = [fire.due for fire in fires if fire.starts]
        for start in range(0, len(dues) if not dry_run else 0, backfill.STEP):
            step = dues[start : start + backfill.STEP]
            await self._change(lambda tx, step=step: backfill.backfill(tx, ref, step))  # type: ignore[misc]
        return fires

    async def history(self, ref: str, limit: int = 50, before: datetime | None = None) -> list[Fire]:
        """Its newest fires (`before` an instant, if given), newest first."""
        await self.get(ref)
        return await reading.history(self._session, ref, limit, before)

    async def stats(self, ref: str, seconds: float = 86_400) -> FireStats:
        """Counts and times of the fires that were due in the last `seconds`."""
        await self.get(ref)
        return await reading.stats(self._session, ref, seconds)

    async def health(self) -> list[health.Trouble]:
        """Return the troubles of schedules, by name; an empty list if there is none."""
        return await health.troubles(self._session)

    async def _change(self, work: Callable[[Transaction], Awaitable[T]], *, wakes: bool = False) -> T:
        async for attempt in backoff(deadline=30):
            with attempt:
                async with self._session.transaction() as tx:
                    answer = await work(tx)
        self._publisher.publish(tx.staged)
        if wakes:
            await wake(self._publisher.transport)
        return answer


async def wake(transport: Transport) -> None:
    """Have executors look at schedules at once. They do so some seconds later without being told."""
    await broadcast.due_sooner(transport, "schedules")


def upcoming(compiled: CompiledSchedule, since: datetime, count: int) -> list[Preview]:
    """The first fires after `since`, within the start and end dates."""
    policy = compiled.policy
    if policy.starts_at:
        since = max(since, policy.starts_at - TICK)
    fires = compiled.spec.preview(count, since)
    return [fire for fire in fires if policy.ends_at is None or fire.instant <= policy.ends_at]


def state_of(row: ScheduleState) -> str:
    """disabled, paused, broken (it cannot be planned), over (it never fires again) or active."""
    if not row.enabled:
        return "disabled"
    if row.error:
        return "broken"
    if row.since > row.now:
        return "paused"
    return "over" if row.next_due is None else "active"
