"""The cost of advancing workflows, in rows that are read: advanced ones count, not all that exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from penstock import Trigger
from penstock.language.moves import COMPLETED, WAITING
from penstock.language.workflows import from_yaml
from penstock.messaging.consumer import Batch
from penstock.store.executions import executions
from penstock.store.session.database import Session
from penstock_executor.handlers import execution_completed, execution_requested, workflow_started
from tests.flows.installation import Installation

CHAIN = from_yaml("""
workflow: cost.chain
tasks:
  one: {wait_for_event: {trigger: cost.never}}
  two: {action: noop, needs: [one], publish: {n: 1}}
  three: {wait_for_event: {trigger: cost.never}, needs: [two]}
""")
READ = """
select sum(seq_tup_read + idx_tup_fetch)::integer from pg_stat_xact_user_tables
where relname in ('execution', 'payload', 'result', 'untold', 'workflow', 'workflow_task', 'workflow_variable')
"""


@pytest.fixture
def transport() -> str:
    return "postgres"


async def handled(session: Session, handler: Any, ids: Sequence[UUID]) -> int:
    """Handle these in one batch. Gives the rows that it read."""
    async with session.transaction() as tx:
        [[before]] = await tx.fetch(READ)
        await handler.handle(Batch(list(ids)), tx)
        [[after]] = await tx.fetch(READ)
    return int(after - before)


async def begun(house: Installation, session: Session, count: int) -> None:
    ids = sorted(await house.client.start_many("cost.chain", [{}] * count))
    for handler in (execution_requested, workflow_started):
        await handled(session, handler, ids)


async def step(house: Installation, session: Session, count: int) -> int:
    """The first tasks of so many of them end, and the last begin. Gives the rows that advancing read."""
    waiting = "select id from execution where task = 'one' and status = 'waiting' order by id limit $1"
    ids = [row["id"] for row in await house.rows(waiting, count)]
    async with house.session.transaction() as tx:
        assert len(await executions.end(tx, ids, [WAITING], COMPLETED, "by hand")) == count
    return await handled(session, execution_completed, ids)


async def test_advancing_some_reads_no_rows_of_others_though_it_was_planned_on_empty_tables(
    house: Installation,
) -> None:
    session = (await house.parts()).database.session()
    await house.apply(Trigger("cost.never"), CHAIN)
    await begun(house, session, 8)
    for _ in range(7):  # plans are made, and kept, while there is hardly anything
        await step(house, session, 1)
    await begun(house, session, 300)
    few = await step(house, session, 10)
    await begun(house, session, 1200)
    many = await step(house, session, 10)
    assert many <= few + 20, (few, many)
    assert few <= 400, few
