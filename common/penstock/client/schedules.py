"""The operations on schedules, for the client and the command line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, TypeVar

import orjson

from penstock.client.argument_ranges import check_limit, check_period
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
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Session, Transaction

T = TypeVar("T")
WHEN = ("cron", "every", "at", "rrule")
"""The options that say when a schedule fires. A schedule has exactly one of them, so setting one removes another."""


@checks_arguments
class Schedules:
    """The schedules of an installation, each as a `penstock.store.schedules.reading.ScheduleState`. Every method that
    takes a `ref` raises NotFound if there is no such schedule."""

    def __init__(self, session: Session, publisher: Publisher) -> None:
        self._session = session
        self._publisher = publisher

    async def all(self) -> list[ScheduleState]:
        """Return all schedules, by ref."""
        return await reading.listed(self._session)

    async def get(self, ref: str) -> ScheduleState:
        rows = await reading.listed(self._session, ref)
        if not rows:
            raise await changes.missing(self._session, ref)
        return rows[0]

    async def put(self, *declared: Schedule) -> list[Change]:
        """Create or change schedules, as `penstock apply` does. Return for each whether it is new, changed or
        unchanged. Raises DefinitionError if a schedule is not valid, or its action is unknown."""
        done = await register(self._session, Definitions(declared))
        await wake(self._publisher.transport)
        return done

    async def create(self, ref: str, options: Mapping[str, Any]) -> Change:
        """Create a schedule with the options of `Schedule`. Raises InvalidInput or DefinitionError if an option is not
        valid, and Conflict if the schedule exists."""
        if await reading.listed(self._session, ref):
            hint = f"Change it with `penstock schedule update {ref} ...`."
            raise Conflict(f"there already is a schedule {ref}", hint=hint)
        if "action" not in options:
            raise InvalidInput("a schedule needs an action", hint="List the actions with: penstock actions")
        return await self._declare({"ref": ref, **options})

    async def update(self, ref: str, options: Mapping[str, Any]) -> Change:
        """Change some options of a schedule. The others stay. Raises NotFound if the schedule does not exist,
        InvalidInput if `enabled` is among the options, and DefinitionError if an option is not valid."""
        try:
            body = orjson.loads((await self.get(ref)).body)
        except NotFound as error:
            error.hint = f"Make it with `penstock schedule create {ref} ...`."
            raise
        if "enabled" in options:
            raise InvalidInput(
                "`enabled` is not changed together with the definition",
                hint=f"Run: penstock schedule disable {ref}, or enable.",
            )
        if any(name in options for name in WHEN):
            body = {name: value for name, value in body.items() if name not in WHEN}
        if "missed" in options:
            options = {**options, "missed": {**body.get("missed", {}), **options["missed"]}}
        return await self._declare({**body, **options})

    async def _declare(self, body: Mapping[str, Any]) -> Change:
        [change] = await self.put(declare(Schedule, dict(body), Source("", 0)))
        return change

    async def preview(self, ref: str, count: int = 10) -> list[Preview]:
        """Return the next fires, as if the schedule were enabled, with notes on its zone's clock changes."""
        check_limit(count, "count")
        row = await self.get(ref)
        compiled = compile_schedule(orjson.loads(row.body))
        return upcoming(compiled, max(row.since, row.now), count)

    async def enable(self, ref: str) -> ScheduleState:
        """Enable a schedule: it fires from now on. Fires during the pause are not caught up; see `backfill`."""
        return await self._change(lambda tx: changes.enable(tx, ref), wakes=True)

    async def disable(self, ref: str) -> ScheduleState:
        """Disable a schedule: it does not fire until it is enabled again. Its runs go on, and waiting fires are
        skipped. Fires that are already due are recorded first."""
        return await self._change(lambda tx: changes.disable(tx, ref))

    async def pause(self, ref: str, seconds: float) -> ScheduleState:
        """Pause a schedule for `seconds`. Afterwards it fires again by itself. Fires that are already due are recorded
        first."""
        check_period(seconds)
        return await self._change(lambda tx: changes.pause(tx, ref, seconds), wakes=True)

    async def delete(self, ref: str) -> None:
        """Delete a schedule. Its fires stay in the history until their retention ends, and its runs go on. Fires that are
        already due are recorded first."""
        await self._change(lambda tx: changes.delete(tx, ref))

    async def run(self, ref: str) -> Fire:
        """Fire a schedule now, enabled or not, under its overlap policy. Return the fire, as in `history`."""
        due, _ = await self._change(lambda tx: backfill.run(tx, ref))
        return next(row for row in await reading.history(self._session, ref, 20) if row.due_at == due)

    async def backfill(
        self, ref: str, first: datetime, last: datetime, *, dry_run: bool = False
    ) -> list[BackfillFire]:
        """Start the fires from `first` to `last` (aware datetimes, both included) that have no execution. They start
        all at once, or one after another if the overlap policy is not `allow`.

        Return all fires of the range, with their earlier status and whether this call starts them. Raises InvalidInput
        for a range with more than 10,000 fires, or that ends before it begins.
        """
        fires = await backfill.range_of(self._session, ref, first, last)
        dues = [fire.due for fire in fires if fire.starts]
        for start in range(0, len(dues) if not dry_run else 0, backfill.STEP):
            step = dues[start : start + backfill.STEP]
            await self._change(lambda tx, step=step: backfill.backfill(tx, ref, step))  # type: ignore[misc]
        return fires

    async def history(self, ref: str, limit: int = 50, before: datetime | None = None) -> list[Fire]:
        """Return the fires of a schedule, newest first, only those before the instant `before` if given."""
        check_limit(limit)
        await self.get(ref)
        return await reading.history(self._session, ref, limit, before)

    async def stats(self, ref: str, seconds: float = 86_400) -> FireStats:
        """Return counts and durations of the fires that were due in a recent period."""
        check_period(seconds)
        await self.get(ref)
        return await reading.stats(self._session, ref, seconds)

    async def health(self) -> list[health.ScheduleTrouble]:
        """Return the troubles of schedules, by name; an empty list if there is none."""
        return await health.troubles(self._session)

    async def _change(self, work: Callable[[Transaction], Awaitable[T]], *, wakes: bool = False) -> T:
        tx, answer = await committed_once(self._session, work)
        self._publisher.publish(tx.staged)
        if wakes:
            await wake(self._publisher.transport)
        return answer


async def wake(transport: Transport) -> None:
    """Notify executors to look at schedules at once. Without the notification they do so some seconds later."""
    await broadcast.due_sooner(transport, "schedules")


def upcoming(compiled: CompiledSchedule, since: datetime, count: int) -> list[Preview]:
    """Return the first fires after `since`, within the start and end dates."""
    policy = compiled.policy
    if policy.starts_at:
        since = max(since, policy.starts_at - TICK)
    fires = compiled.spec.preview(count, since)
    return [fire for fire in fires if policy.ends_at is None or fire.instant <= policy.ends_at]


def spread(compiled: CompiledSchedule, since: datetime, until: datetime, step: timedelta) -> list[datetime]:
    """Return fires from `since` to before `until`: the first one of each `step`."""
    fires: list[datetime] = []
    at = since - TICK
    while (due := upcoming(compiled, at, 1)) and due[0].instant < until:
        fires.append(due[0].instant)
        at = since + step * ((due[0].instant - since) // step + 1) - TICK
    return fires
