"""Lists of executions: their rows, and the cost of reading them."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from penstock.language.moves import BAD
from penstock.store.executions import execution_list
from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
from tests.flows import shop
from tests.flows.installation import Installation

ENDED = """
with made as (
    insert into execution (id, status, namespace_id, definition_id, created_at, finished_at)
    select gen_random_uuid(), $1, (select min(id) from namespace), (select min(id) from definition), now(), now()
    from generate_series(1, $2) returning id
), given as (
    insert into payload (execution_id, params) select id, '{}' from made
)
insert into result (execution_id, error) select id, $3 from made
"""
ASKS = """
insert into inquiry (execution_id, prompt, status) select id, 'Well?', 'created' from execution order by id limit 1
"""
PAUSES = "insert into paused_workflow (execution_id) select id from execution order by id limit 1"
LABELS = """
insert into label (tenant, key, value, child, execution_id)
select 'public', 'customer', 'acme', false, id from execution
"""
READ = """
select sum(seq_tup_read + idx_tup_fetch)::integer from pg_stat_xact_user_tables where relname in ('execution', 'result')
"""


@pytest.fixture
def transport() -> str:
    return "postgres"


async def test_bad_ends_are_listed_without_reading_good_ones(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 1})
    session = (await house.parts()).database.session()

    async def listed(status: Collection[str]) -> tuple[list[ListedExecution], int]:
        """Return the listed executions, and the number of rows that were read."""
        async with session.transaction() as tx:
            [[before]] = await tx.fetch(READ)
            found = await execution_list.page(tx, ExecutionFilter(status=status), limit=10)
            [[after]] = await tx.fetch(READ)
        return found, int(after - before)

    for status in ("failed", "timeout", "abandoned"):
        await session.fetch(ENDED, status, 2, '{"type": "Broken"}')
    await session.fetch(ENDED, "completed", 5000, None)
    await session.fetch(ENDED, "cancelled", 20, '{"type": "cancelled"}')
    await session.fetch("analyze execution, result")

    found, read = await listed(BAD)
    assert sorted(one.status for one in found) == ["abandoned"] * 2 + ["failed"] * 2 + ["timeout"] * 2
    assert [one.id for one in found] == sorted((one.id for one in found), reverse=True)
    assert read <= 100
    found, read = await listed(["timeout"])
    assert [one.status for one in found] == ["timeout"] * 2
    assert read <= 100
    found, _ = await listed(["cancelled", "failed"])
    assert {one.status for one in found} <= {"cancelled", "failed"}
    assert len(found) == 10

    badly = ExecutionFilter(status=["failed"])
    [second, first] = await execution_list.page(session, badly)
    assert await execution_list.page(session, badly, before=second.id) == [first]
    assert await execution_list.count(session, badly) == 2


READ_OF_ALL = READ.replace("'execution', 'result'", "'execution', 'result', 'label'")


@pytest.mark.parametrize("labels", [None, {"customer": "acme"}])
@pytest.mark.parametrize("condition", ["paused", "waits_for_answer"])
async def test_few_paused_or_asking_executions_are_listed_by_their_ids(
    house: Installation, condition: str, labels: dict[str, str] | None
) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 1})
    session = (await house.parts()).database.session()
    [oldest] = await execution_list.page(session, ExecutionFilter())
    await session.fetch(PAUSES if condition == "paused" else ASKS)
    await session.fetch(ENDED, "completed", 5000, None)
    await session.fetch(LABELS)
    await session.fetch("analyze execution, label")
    filters = ExecutionFilter(
        labels=labels, paused=condition == "paused", waits_for_answer=condition != "paused"
    )
    async with session.transaction() as tx:
        for _ in range(12):  # after five plans for the arguments, PostgreSQL considers one for all arguments
            [[before]] = await tx.fetch(READ_OF_ALL)
            found = await execution_list.page(tx, filters, limit=50)
            [[after]] = await tx.fetch(READ_OF_ALL)
            assert [row.id for row in found] == [oldest.id]
            assert after - before <= 20
    assert await execution_list.count(session, filters) == 1
