"""Waiting for results while PostgreSQL gives no answer that is one."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from penstock import action
from penstock.errors import ExecutionFailed, NotMigrated
from penstock.language.terms.ids import new_id
from penstock.store.executions import awaited, executions, result_watch
from tests.flows import shop
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@pytest.mark.parametrize("table", ["result", "archive"])
async def test_a_waiter_gets_the_error_that_ended_the_watch(house: Installation, table: str) -> None:
    """`result` is read at each look, `archive` for an unknown execution. The next waiter starts a new watch."""
    await house.apply(*shop.ALL)
    id = new_id() if table == "archive" else await house.client.start("shop.charge", {"order": 1})
    await house.rows(f"alter table {table} rename to gone")
    async with asyncio.timeout(30):
        with pytest.raises(NotMigrated):
            await asyncio.gather(house.client.result(id), house.client.result(id))
    await house.rows(f"alter table gone rename to {table}")
    await house.start(*shop.ALL)
    assert await house.client.run("shop.charge", {"order": 2}, timeout=20) == {"order": 2, "charged": 0}


async def test_an_id_that_came_as_text_is_waited_for_as_well(house: Installation) -> None:
    await house.start(*shop.ALL)
    id: Any = str(await house.client.start("shop.charge", {"order": 1}))
    assert await house.client.result(id, timeout=20) == {"order": 1, "charged": 0}


async def test_execution_that_is_awaited_during_a_search_for_others_is_not_missing(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look into the archive takes so long that another caller comes before its answer."""
    await house.apply(*shop.ALL)
    first, second = [await house.client.start("shop.charge", {"order": order}) for order in (1, 2)]
    find, is_looking, may_answer = executions.find, asyncio.Event(), asyncio.Event()

    async def find_slowly(*arguments: Any) -> Any:
        rows = await find(*arguments)
        is_looking.set()
        await may_answer.wait()
        return rows

    monkeypatch.setattr(executions, "find", find_slowly)
    results = [asyncio.create_task(house.client.result(first, timeout=20))]
    await is_looking.wait()
    results.append(asyncio.create_task(house.client.result(second, timeout=20)))
    await asyncio.sleep(0)
    may_answer.set()
    await house.start(*shop.ALL)
    assert [result["order"] for result in await asyncio.gather(*results)] == [1, 2]


@pytest.fixture
def looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make looks so rare that a waiter without a notice would wait for longer than a test lasts."""
    for name in ("FIRST", "MOST"):
        monkeypatch.setattr(result_watch, name, 3600.0)


@pytest.mark.usefixtures("looks_seldom")
async def test_a_waiter_is_notified_of_the_end(house: Installation) -> None:
    await house.start(*shop.ALL)
    for order in range(3):
        result = await house.client.run("shop.charge", {"order": order}, timeout=20)
        assert result == {"order": order, "charged": 0}
    ids = [await house.client.start("shop.charge", {"order": order}, delay=0.3) for order in range(20)]
    found = await asyncio.gather(*(house.client.result(id, timeout=20) for id in ids * 2))
    assert [one["order"] for one in found] == [*range(20), *range(20)]


@pytest.mark.usefixtures("looks_seldom")
async def test_a_short_result_comes_with_the_word_and_is_not_looked_for(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    waiting = asyncio.create_task(house.client.result(id, timeout=20))
    await house.until("select 1 from awaited where execution_id = $1", id)
    monkeypatch.setattr(awaited, "look", None)
    await house.start(*shop.ALL)
    assert await waiting == {"order": 1, "charged": 0}


@pytest.mark.usefixtures("looks_seldom")
async def test_a_result_that_no_notification_could_carry_is_looked_for(house: Installation) -> None:
    @action(pack="letters")
    async def write(letters: int) -> str:
        return "ä" * letters  # two bytes each

    @action(pack="letters")
    async def fail(letters: int) -> str:
        raise ValueError("ä" * letters)

    await house.start(write, fail)
    for letters in (3000, 3900, 4000, 20_000):
        assert await house.client.run("letters.write", {"letters": letters}, timeout=20) == "ä" * letters
    with pytest.raises(ExecutionFailed, match="ä" * 100):
        await house.client.run("letters.fail", {"letters": 5000}, timeout=20)


@pytest.mark.usefixtures("looks_seldom")
async def test_a_waiter_is_notified_of_a_cancellation(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    waiting = asyncio.create_task(house.client.result(id, timeout=20))
    await house.until("select 1 from awaited where execution_id = $1", id)
    await house.client.cancel(id)
    with pytest.raises(ExecutionFailed, match="cancelled"):
        await waiting


async def test_a_result_arrives_though_no_waiter_is_notified(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    waiting = asyncio.create_task(house.client.result(id, timeout=20))
    await house.until("select 1 from awaited where execution_id = $1", id)
    await house.rows("delete from awaited returning 1")
    await house.start(*shop.ALL)
    assert await waiting == {"order": 1, "charged": 0}


async def test_a_result_is_found_though_the_connection_that_listens_is_lost(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 1})
    waiting = asyncio.create_task(house.client.result(id, timeout=20))
    await house.until("select 1 from awaited where execution_id = $1", id)
    await house.rows(
        "select pg_terminate_backend(pid) from pg_stat_activity where query like 'LISTEN \"awaited.%'"
    )
    await house.start(*shop.ALL)
    assert await waiting == {"order": 1, "charged": 0}


async def test_a_waiter_that_leaves_waits_for_nothing_any_more(database: str) -> None:
    async with Installation(database, None) as house:
        await house.start(*shop.ALL)
        assert await house.client.run("shop.charge", {"order": 1}, timeout=20) == {"order": 1, "charged": 0}
        id = await house.client.start("shop.charge", {"order": 2}, delay=60)
        with pytest.raises(TimeoutError):
            await house.client.result(id, timeout=0.1)
        assert await house.rows("select 1 from awaited")
        await house.client._watch.close()
        assert not await house.rows("select 1 from awaited")


async def test_a_waiter_that_comes_back_soon_keeps_its_connection(house: Installation) -> None:
    await house.start(*shop.ALL)
    listening = set()
    for order in range(5):
        await house.client.run("shop.charge", {"order": order}, timeout=20)
        listening.add(house.client._watch._listener._connection)
        await asyncio.sleep(0.05)  # one may be told late of what one has found
    assert len(listening) == 1
    assert None not in listening


LATE_COMMIT = """
create function wait_at_commit() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(4242);
    return null;
end $$;
create constraint trigger late after insert on awaited deferrable initially deferred
for each row execute function wait_at_commit();
"""


@pytest.mark.usefixtures("looks_seldom")
async def test_run_is_told_of_end_before_wait_commits(house: Installation) -> None:
    """The transaction that says that the end is awaited commits last, after the execution has ended where that is possible."""
    await house.start(*shop.ALL)
    await house.client.run("shop.charge", {"order": 1}, timeout=20)  # from now on the client listens
    url = house.settings().database_url
    assert url is not None
    connection = await asyncpg.connect(url.get_secret_value())
    try:
        await connection.execute(LATE_COMMIT)
        await connection.execute("select pg_advisory_lock(4242)")
        running = asyncio.create_task(house.client.run("shop.charge", {"order": 2}, timeout=20))
        await house.until("select 1 from pg_locks where objid = 4242 and not granted")
        await house.until("select 1 where not exists (select from execution where finished_at is null)")
        await connection.execute("select pg_advisory_unlock(4242)")
        assert await running == {"order": 2, "charged": 0}
    finally:
        await connection.close()


@pytest.mark.usefixtures("looks_seldom")
async def test_run_takes_end_that_is_told_before_submit_returns(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.start(*shop.ALL)
    await house.client.run("shop.charge", {"order": 1}, timeout=20)
    watch, start = house.client._watch, house.client._submits.start

    async def late(*args: Any) -> Any:
        id = await start(*args)
        async with asyncio.timeout(20):
            while id not in watch._early:
                await asyncio.sleep(0.005)
        return id

    monkeypatch.setattr(house.client._submits, "start", late)
    monkeypatch.setattr(awaited, "look", None)
    assert await house.client.run("shop.charge", {"order": 2}, timeout=20) == {"order": 2, "charged": 0}
    assert not watch._early
