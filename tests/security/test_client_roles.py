"""A client's role reads the executions that it started, and no others."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from urllib.parse import urlsplit
from uuid import UUID

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.errors import NotAllowed, NotFound
from penstock.language.terms.ids import new_id
from penstock.store.executions import executions
from penstock.store.executions.archive import archive_finished
from penstock.store.schema import grants
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers.databases import as_service


def as_other(database: str) -> str:
    """Return the address of the database for a second client's role."""
    address = as_service(database, "client")
    role = urlsplit(address).username
    return address.replace(f"{role}:", f"{role}_2:", 1)


@pytest.fixture
async def clients(
    database: str, broker: str | None, house: Installation
) -> AsyncIterator[tuple[Client, Client]]:
    """Clients of two roles."""
    role = urlsplit(as_other(database)).username
    assert role is not None
    owner = await asyncpg.connect(database)
    password = (urlsplit(as_other(database)).password or "").replace("%20", " ")
    await owner.execute(f"create role {role} login noinherit password '{password}'")
    try:
        for statement in grants.statements("public", "client", role):
            await owner.execute(statement)
        mine = house.settings(database_url=SecretStr(as_service(database, "client")))
        other = house.settings(database_url=SecretStr(as_other(database)))
        async with Client.connect(mine) as first, Client.connect(other) as second:
            yield first, second
    finally:
        await owner.execute(f"drop owned by {role}; drop role {role}")
        await owner.close()


async def reads(client: Client, id: UUID) -> bool:
    """Return true if all methods of a client that read an execution do, and false if none does."""
    answers: list[bool] = []
    for read in (client.get, client.history, client.attempts, client.result):
        try:
            answers.append(bool(await (read(id, timeout=30) if read == client.result else read(id))) or True)
        except NotFound:
            answers.append(False)
    assert len(set(answers)) == 1, answers
    return answers[0]


async def test_client_reads_executions_of_its_role(
    make_house: object, house: Installation, clients: tuple[Client, Client]
) -> None:
    first, second = clients
    await house.start(*shop.ALL)
    mine = await first.start("shop.count", {"words": "a b"})
    others = await second.start_many("shop.count", [{"words": "a"}] * 30)
    owners = await house.client.start("shop.count", {"words": "a"})
    for id in (mine, others[0], others[-1], owners):
        await house.client.result(id, timeout=30)
    assert [await reads(first, id) for id in (mine, others[0], others[-1], owners)] == [
        True,
        False,
        False,
        False,
    ]
    assert [await reads(second, id) for id in (mine, others[0], others[-1], owners)] == [
        False,
        True,
        True,
        False,
    ]
    assert (await first.get(mine)).params == '{"words": "a b"}'
    assert await first.run("shop.count", {"words": "a b c"}, timeout=30) == 3
    await house.quiet()


async def test_a_client_reads_tasks_and_archived_runs(
    database: str, make_house: object, house: Installation, clients: tuple[Client, Client]
) -> None:
    first, _ = clients
    await house.start(*shop.STURDY)
    id = await first.start("shop.in_steps", {"n": 7})
    await first.result(id, timeout=30)
    children = [row["id"] for row in await house.rows("select id from execution where parent = $1", id)]
    assert children

    async def read_by() -> list[list[bool]]:
        return [[await reads(client, x) for x in (id, *children)] for client in clients]

    seen = [[True] * (1 + len(children)), [False] * (1 + len(children))]
    assert await read_by() == seen
    await house.quiet()
    await archive_finished(house.session, 0, 100, 0)
    assert await house.rows("select from archive where id = $1", id)
    assert await read_by() == seen


async def test_an_id_of_an_archived_run_opens_nothing(
    house: Installation, make_house: object, clients: tuple[Client, Client]
) -> None:
    """The other role knows the id of a run that was just archived, and submits its own execution under that id."""
    first, second = clients
    await house.start(*shop.ALL)
    id = await first.start("shop.count", {"words": "a secret"})
    await first.result(id, timeout=30)
    await house.quiet()
    await archive_finished(house.session, 0, 100, 0)
    namespace, definition = await shop_ids(house)
    await second.session.fetch(
        'select from place_alike(array[$1::uuid], $2, $3, array[\'{"words": "b"}\'], array[null::text], 0::smallint, false)',
        id,
        namespace,
        definition,
    )
    rows = await executions.find(second.session, [id])
    assert [row.params for row in rows] == ['{"words": "b"}']


async def test_client_role_leaves_first_turn_to_executor(
    make_house: object, house: Installation, clients: tuple[Client, Client]
) -> None:
    """A role that could write first turns could invent the state of a workflow."""
    first, _ = clients
    await house.start(*shop.STURDY)
    for _ in range(6):
        id = await first.start("shop.in_steps", {"n": 7})
        await first.result(id, timeout=30)
        await first._submits.settle()
        rows = await house.rows("select id from execution where parent = $1 order by id", id)
        [row] = await house.rows(
            "select actor from history where execution_id = $1 and old is null", rows[0]["id"]
        )
        assert row["actor"].startswith("executor:")
    with pytest.raises(NotAllowed):
        await first.session.fetch(
            "select from begin_workflow('{}', 1, 1, '{}', '{}', 0::smallint, true, '{}', '{}', '{}', '{}', '{}', '{}', '{}',"
            " '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')"
        )


async def shop_ids(house: Installation) -> tuple[int, int]:
    [row] = await house.rows(
        "select n.id as namespace, c.definition_id from namespace n join catalog c on c.ref = n.action "
        "where n.action = 'shop.count'"
    )
    return row["namespace"], row["definition_id"]


async def test_no_client_names_the_role_that_started(
    database: str, house: Installation, clients: tuple[Client, Client]
) -> None:
    first, second = clients
    await house.apply(*shop.ALL)
    await house.client.start("shop.count", {"words": "a"})
    namespace, definition = await shop_ids(house)
    forged = json.dumps({"role": urlsplit(as_service(database, "client")).username, "by": "ada"})
    ids = [new_id(), new_id()]
    await second.session.fetch(
        "select from place_alike(array[$1::uuid], $2, $3, array['{}'], array[$4::text], 0::smallint, false)",
        ids[0],
        namespace,
        definition,
        forged,
    )
    await second.session.fetch(
        "select from submit_executions(array[$1::uuid], array[$2::integer], array[$3::integer], array['{}'], null, "
        "array[$4::text], array[0::smallint], null, null, null, null, null, true)",
        ids[1],
        namespace,
        definition,
        forged,
    )
    role = urlsplit(as_other(database)).username
    for id in ids:
        with pytest.raises(NotFound):
            await first.get(id)
        assert json.loads((await second.get(id)).origin or "") == {"by": "ada", "role": role}


async def test_no_client_hears_a_result_of_another_role(
    database: str, make_house: object, house: Installation, clients: tuple[Client, Client]
) -> None:
    first, second = clients
    watcher = new_id()
    heard: list[str] = []
    connection = await asyncpg.connect(as_other(database))
    await connection.add_listener(f"awaited.{watcher}", lambda *arguments: heard.append(arguments[-1]))
    await house.apply(*shop.ALL)
    id = await first.start("shop.count", {"words": "a b"})
    await connection.execute("insert into awaited (execution_id, watcher) values ($1, $2)", id, watcher)
    await connection.fetch("select from look_for_awaited($1, '{}', array[$2::uuid], '{}')", watcher, id)
    with pytest.raises(asyncpg.InsufficientPrivilegeError):
        await connection.fetch("select watcher from awaited")
    assert await house.rows("select from awaited where watcher = $1", watcher) == []
    own = await second.start("shop.count", {"words": "a"})
    await connection.fetch("select from look_for_awaited($1, '{}', array[$2::uuid], '{}')", watcher, own)
    await house.start(*shop.ALL)
    async with asyncio.timeout(30):
        while not heard:
            await asyncio.sleep(0.05)
        await house.client.result(id, timeout=30)
    await house.quiet()
    assert [text for text in heard if str(id) in text] == []
    await connection.close()
