"""Lists say what an execution waits for while nothing in it runs, in the words of `why`."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from penstock import AskInquiry, DurableContext, Limit, action, later, workflow
from penstock.operate import titles
from penstock.operate.access import create_token
from penstock.operate.executions import described_execution
from penstock.store.executions import execution_list, listed_waits
from penstock.store.executions.execution_list import ExecutionFilter, ListedWait
from penstock.store.executions.listed_waits import MAX_CHILDREN
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="waits")
async def approve(order: int) -> Any:
    return AskInquiry(f"Ship order {order}?", assignee="ada")


@action(pack="waits")
async def build(order: int) -> Any:
    return later(f"ci-{order}", timeout="2h")


@action(pack="waits", route="nowhere")
async def never(order: int) -> None: ...


@action(pack="waits", retry={"max_attempts": 2, "initial_delay": 3600, "max_delay": 3600, "jitter": 0})
async def breaks(order: int) -> None:
    raise OSError("down")


@workflow(pack="waits")
def ship(order: int):  # type: ignore[no-untyped-def]
    approve(order=order)


@workflow(pack="waits")
def nested(order: int):  # type: ignore[no-untyped-def]
    ship(order=order)
    approve(order=order)


@workflow(pack="waits")
def busy(order: int):  # type: ignore[no-untyped-def]
    approve(order=order)
    never(order=order)


@workflow(pack="waits")
def retries(order: int):  # type: ignore[no-untyped-def]
    breaks(order=order)


@workflow(pack="waits")
def builds(order: int):  # type: ignore[no-untyped-def]
    build(order=order)


@action(pack="waits")
async def paid(ctx: DurableContext, order: int) -> Any:
    return await ctx.signal("paid")


@action(pack="waits")
async def sleeps(ctx: DurableContext, order: int) -> None:
    await ctx.sleep("1h")


@action(pack="waits")
async def asks(ctx: DurableContext, order: int) -> Any:
    return await ctx.ask("Well?")


ALL = (approve, build, never, breaks, ship, nested, busy, retries, builds, paid, sleeps, asks)
STATUS = "select 1 from execution where id = '{}' and status = 'waiting'"
OPEN = "select 1 from execution where parent = '{}' and status = '{}'"


@pytest.fixture
def transport() -> str:
    return "postgres"


async def listed(house: Installation, **filters: Any) -> dict[UUID, ListedWait | None]:
    rows = await titles.listed(house.session, ExecutionFilter(**filters))
    return {row.id: row.waits_for for row in rows}


async def test_workflows_name_their_waits(house: Installation) -> None:
    await house.start(*ALL)
    ids = {}
    for ref in ("ship", "nested", "busy", "retries", "builds"):
        ids[ref] = await house.client.start(f"waits.{ref}", {"order": 7})
    await house.until("select 1 from inquiry where status = 'created' having count(*) = 4")
    await house.until(OPEN.format(ids["builds"], "waiting"))
    await house.until(OPEN.format(ids["retries"], "requested"))
    await house.until(OPEN.format(ids["busy"], "scheduled"))
    waits = await listed(house)
    words = {ref: wait.text if (wait := waits[id]) else None for ref, id in ids.items()}
    question = "waits for an answer from ada: Ship order 7?"
    assert words.pop("retries").startswith("waits until 20")  # type: ignore[union-attr]
    assert words == {
        "ship": question,
        "nested": f"{question} (and 1 more)",
        "busy": None,
        "builds": "waits for an outside system to complete ci-7",
    }
    ship_wait = waits[ids["ship"]]
    assert ship_wait is not None
    assert ship_wait.because == "inquiry"
    answer = await house.client.why(ids["ship"])
    assert question in answer.says
    assert (await house.client.get(ship_wait.execution_id)).parent == ids["ship"]
    asking = await listed(house, waits_for_answer=True)
    assert set(asking) == {ids["ship"], ids["nested"], ids["busy"]}


async def test_durable_functions_name_their_waits(house: Installation) -> None:
    await house.start(*ALL)
    ids = {ref: await house.client.start(f"waits.{ref}", {"order": 7}) for ref in ("paid", "sleeps", "asks")}
    for id in ids.values():
        await house.until(STATUS.format(id))
    await house.until("select 1 from inquiry where status = 'created'")
    waits = await listed(house)
    assert waits[ids["paid"]].text == "waits for the signal paid"  # type: ignore[union-attr]
    assert waits[ids["asks"]].text == "waits for an answer: Well?"  # type: ignore[union-attr]
    sleep = waits[ids["sleeps"]]
    assert sleep is not None
    assert (sleep.because, sleep.due_at is None, sleep.text[:14]) == ("timer", False, "waits until 20")
    assert set(await listed(house, waits_for_answer=True)) == {ids["asks"]}


async def test_execution_that_has_not_begun_names_its_instant_or_hold(house: Installation) -> None:
    await house.start(*ALL)
    delayed = await house.client.start("waits.never", {"order": 1}, delay=3600)
    failed = await house.client.start("waits.breaks", {"order": 2})
    await house.until(
        f"select 1 from execution where id = '{failed}' and status = 'requested' and attempt = 1"
    )
    await house.client.holds.hold("action", "waits.build", by="ada")
    held = await house.client.start("waits.build", {"order": 3})
    waits = await listed(house)
    for id in (delayed, failed):
        wait = waits[id]
        assert wait is not None
        assert (wait.because, wait.text[:14], wait.execution_id) == ("timer", "waits until 20", id)
    wait = waits[held]
    assert wait is not None
    assert (wait.because, wait.text, wait.due_at) == ("held", "waits for the release of a hold", None)


async def test_command_and_pages_show_the_waits(house: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.start(*ALL)
    asking = await house.client.start("waits.nested", {"order": 7})
    await house.client.start("waits.never", {"order": 8})
    await house.until("select 1 from inquiry where status = 'created' having count(*) = 2")
    database_url = house.settings().database_url
    assert database_url is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database_url.get_secret_value())
    monkeypatch.setenv("COLUMNS", "300")
    text = "waits for an answer from ada: Ship order 7? (and 1 more)"
    printed = await penstock("executions", "--waits-for-answer")
    assert str(asking) in printed.out
    assert text in printed.out
    assert "waits.never" not in printed.out
    _, secret = await create_token(house.session, "reads", ["read"], tenants=(), by="test")
    backend = Backend.of(house.client)
    transport = httpx.ASGITransport(make_app(backend))
    headers = {"authorization": f"Bearer {secret}"}
    async with httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=headers) as caller:
        answer = await caller.get("/api/v1/executions", params={"waits_for_answer": "true"})
        [row] = answer.json()["items"]
        assert (row["id"], row["waits_for"]["text"]) == (str(asking), text)
        page = await caller.get("/executions", params={"waits_for_answer": "true"})
        assert text in page.text
        assert f'href="/executions/{row["waits_for"]["execution_id"]}"' in page.text
    await backend.changes.close()


ENDED = """
insert into execution (id, status, namespace_id, definition_id, parent, task, item, created_at, finished_at)
select gen_random_uuid(), 'completed', (select min(id) from namespace), (select min(id) from definition), $1, 'many', n,
    now(), now()
from generate_series(1, $2) n
"""
READ = "select sum(seq_tup_read + idx_tup_fetch)::integer from pg_stat_xact_user_tables where relname = 'execution'"


async def test_large_workflow_costs_its_bound_and_says_nothing(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("waits.ship", {"order": 7})
    await house.until("select 1 from inquiry where status = 'created'")
    session = (await house.parts()).database.session()
    await session.fetch(ENDED, id, 20 * MAX_CHILDREN)
    await session.fetch("analyze execution")
    async with session.transaction() as tx:
        [[before]] = await tx.fetch(READ)
        waits = await listed_waits.of_listed(tx, [id])
        [[after]] = await tx.fetch(READ)
    assert waits == []
    assert after - before < 2 * MAX_CHILDREN


@action(pack="waits", limits=[Limit(1)])
async def narrow(order: int) -> None: ...


@action(pack="waits", limits=[Limit(1)], route="nowhere")
async def lonely(order: int) -> None: ...


@action(pack="waits")
async def present(order: int) -> None:
    await BUSY.wait()


BUSY = asyncio.Event()
SCHEDULED = "select 1 from execution where id = '{}' and status = 'scheduled'"
QUEUED = "select 1 from execution where status = 'queued' having count(*) = {}"
LANES = "update lane set gate_kind = 'regroup', gate_limit = null, gate_group = null"


async def test_queued_and_scheduled_executions_name_their_limit_or_worker(house: Installation) -> None:
    await house.start(*ALL, narrow, lonely, present, concurrency=1)
    BUSY.clear()
    runs = await house.client.start("waits.present", {"order": 1})
    await house.until(f"select 1 from execution where id = '{runs}' and status = 'running'")
    ready, first, second, never_run, alone = [
        await house.client.start(f"waits.{name}", {"order": 1})
        for name in ("present", "narrow", "narrow", "never", "lonely")
    ]
    for id in (ready, first, never_run):
        await house.until(SCHEDULED.format(id))
    await house.until(QUEUED.format(2))
    free = ("worker", "waits for a free worker of the route default")
    none = ("route", "waits for a worker: no online worker of the route nowhere can run it")
    waits = {id: wait and (wait.because, wait.text) for id, wait in (await listed(house)).items()}
    assert waits == {
        runs: None,
        ready: free,
        first: free,
        second: ("limit", "waits for the limit waits.narrow.all"),
        never_run: none,
        alone: none,
    }
    document = await described_execution(house.session, second)
    assert document["waits_for"].text == "waits for the limit waits.narrow.all"
    await house.rows(LANES)
    wait = (await listed(house))[second]
    assert wait is not None
    assert wait.text == "waits for an executor to sort its queue again, since its limits have changed"
    BUSY.set()


async def test_waits_before_starts_cost_one_statement(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.start(*ALL, lonely)
    for number in range(50):
        await house.client.start("waits.lonely", {"order": number})
    await house.until(QUEUED.format(50))
    session = (await house.parts()).database.session()
    rows = await execution_list.page(session, limit=50)
    statuses = {row.id: row.status for row in rows}
    statements: list[str] = []
    fetch = type(session).fetch

    async def counted(self: Any, statement: str, *arguments: Any) -> Any:
        if self is session:
            statements.append(statement)
        return await fetch(self, statement, *arguments)

    monkeypatch.setattr(type(session), "fetch", counted)
    waits, _ = await titles.waits_of(session, statuses)
    assert (statements, len(waits)) == ([listed_waits.STARTS], 50)
