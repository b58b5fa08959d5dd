"""An installation of which the test plays every part by hand: the executor, a worker that is only a row, and the clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import orjson

from penstock.language.terms.ids import new_id
from penstock.service.assembly import Parts
from penstock_executor.loops import end_overdue, end_unclaimed, fire_timers
from tests.flows.installation import Installation
from tests.penstock.store.admission.desk import CLAIM, FINISH

LATER = """
update execution set since = coalesce(since, ready_at) - interval '1 hour' where finished_at is null;
update timer set due_at = due_at - interval '1 hour';
update inquiry set due_at = due_at - interval '1 hour' where status = 'created';
update claim set claimed_at = claimed_at - interval '1 hour'
"""
"""An hour goes by. (A place in line stays: `since` is what clocks go by, and `ready_at` what lines are ordered by.)"""


class ByHand(Installation):
    """An installation of which the test plays every part."""

    own: Parts
    claimer: UUID

    async def open(self, *definitions: Any) -> None:
        """Apply these, and have a worker that runs the actions among them."""
        await self.apply(*definitions)
        self.own = await self.parts()
        self.claimer = await self.hire([one.ref for one in definitions if hasattr(one, "executor")])

    async def hire(self, actions: Sequence[str]) -> UUID:
        """A worker that is only a row."""
        worker = new_id()
        await self.rows(
            "insert into process (id, kind, name, routes, actions) values ($1, 'worker', 'w', '{default}', $2) returning 1",
            worker,
            list(actions),
        )
        return worker

    async def requested(self, ref: str, **options: object) -> UUID:
        """Store it in a transaction of the caller's own, before a look at its limits."""
        connection = await self.own.database.connect()
        try:
            async with connection.transaction():
                return await self.client.start(ref, connection=connection, **options)  # type: ignore[arg-type]
        finally:
            await connection.close()

    async def scheduled(self, ref: str, **options: object) -> UUID:
        """Schedule as far as its limits let it."""
        id = await self.client.start(ref, **options)  # type: ignore[arg-type]
        await self.schedule(id)
        return id

    async def schedule(self, id: UUID) -> None:
        await self.rows("select * from schedule_executions(array[$1::uuid])", id)

    async def claim(self, id: UUID) -> None:
        [row] = await self.rows("select definition_id from execution where id = $1", id)
        assert await self.rows(CLAIM, self.claimer, new_id(), [id], "work.default", [row[0]])

    async def running(self, ref: str, **options: object) -> UUID:
        id = await self.scheduled(ref, **options)
        await self.claim(id)
        return id

    async def finish(self, id: UUID, status: str, delay: float | None = 0.0) -> None:
        [row] = await self.rows("select attempt from execution where id = $1", id)
        asked = orjson.dumps({"prompt": "?"}).decode() if status == "waiting" else None
        assert await self.rows(FINISH, self.claimer, [id], [row[0]], [status], [asked], [delay])

    async def later(self) -> None:
        """Let an hour go by, in which the worker lives, and let all loops look for due work."""
        await self.pass_time()
        await self.rows("update process set beat_at = clock_timestamp() returning 1")
        await self.look()

    async def pass_time(self) -> None:
        for statement in LATER.split(";"):
            await self.rows(f"{statement} returning 1")

    async def look(self) -> None:
        """Do all due work."""
        session = self.own.database.session()
        while await fire_timers.turn(self.own, session) is True:
            pass
        for loop in (end_overdue, end_unclaimed):
            while await loop.turn(self.own, session):
                pass

    async def stands(self, id: UUID) -> str:
        return (await self.client.get(id)).status
