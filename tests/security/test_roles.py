"""A service's role reaches what the service needs, and no credential beyond that: every table and every function is tried."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.language.terms.ids import new_id
from penstock.operate import secrets
from penstock.operate.check import check
from penstock.operate.doctor import examine
from penstock.store.schema.rights import FUNCTIONS, SERVICES, TABLES
from penstock.store.upkeep.invariants import INVARIANTS
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY
from tests.servers.databases import as_service

CREDENTIALS = {
    *("api_token", "person", "person_role", "person_session", "recovery_code"),
    *("known_address", "login_failure"),
    *("signing_key", "secret", "webhook", "subscription", "delivery", "audit", "service_role"),
}
"""Written here a second time, so that a slip in the table of rights is found."""
HIDDEN_FROM_LOOK = CREDENTIALS - {"service_role"} | {
    *("payload", "result", "log_line", "step", "workflow_task", "workflow_item", "workflow_kept"),
    *(
        "workflow_variable",
        "workflow_command",
        "event_key",
        "event_path",
        "event_trace",
        "event_wait",
        "idempotency",
    ),
}
READ_BY_LOOK_IN_PART = {
    "archive": {"params", "options", "origin", "result", "error", "state", "steps", "attempts"},
    "attempt": {"error"},
    "definition": {"body"},
    "dead_letter": {"body", "headers", "fingerprint"},
    "enforcement": {"params", "options", "error"},
    "event": {"payload"},
    "inquiry": {"schema", "default_answer", "response"},
    "outbox": {"body", "headers"},
    "poll": {"state", "error"},
}
"""Columns that may hold what users gave, and so what their schemas mark as secret."""
ALL_TABLES = """
select c.relname::text as name, coalesce(i.inhparent::regclass::text, c.relname::text) as whole
from pg_class c left join pg_inherits i on i.inhrelid = c.oid
where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f')
"""
ALL_FUNCTIONS = """
select p.proname::text as name, p.oid::integer as oid, p.prosecdef as definer, p.proconfig as settings,
    exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a where a.grantee = 0) as public
from pg_proc p where p.pronamespace = 'public'::regnamespace
"""


@pytest.fixture
async def owner(database: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def may(connection: asyncpg.Connection[asyncpg.Record], sql: str) -> bool:
    """Return true if PostgreSQL lets the role begin a statement: it checks rights before it explains one."""
    try:
        await connection.fetch(f"explain {sql}")
    except asyncpg.InsufficientPrivilegeError:
        return False
    return True


async def columns(owner: asyncpg.Connection[asyncpg.Record], table: str) -> list[str]:
    rows = await owner.fetch(
        "select attname::text as name from pg_attribute where attrelid = $1::text::regclass and attnum > 0 "
        "and not attisdropped and attgenerated = '' order by attnum",
        table,
    )
    return [row["name"] for row in rows]


@pytest.mark.parametrize("service", SERVICES)
async def test_role_has_the_rights_of_the_table_and_no_more(
    database: str, owner: asyncpg.Connection[asyncpg.Record], service: str
) -> None:
    connection = await asyncpg.connect(as_service(database, service))
    tables = {row["name"]: row["whole"] for row in await owner.fetch(ALL_TABLES)}
    wrong: list[tuple[object, ...]] = []
    for table, whole in tables.items():
        names = await columns(owner, table)
        readable = {n for n in names if await may(connection, f'select "{n}" from "{table}"')}
        held = {"select"} if readable else set()
        if await may(connection, f'insert into "{table}" ("{names[0]}") values (default)'):
            held.add("insert")
        if any([await may(connection, f'update "{table}" set "{n}" = default') for n in names]):
            held.add("update")
        if await may(connection, f'delete from "{table}"'):
            held.add("delete")
        if await may_truncate(connection, table):
            held.add("truncate")
        rights = TABLES.get(whole, {}).get(service, ())
        said = {right.verb for right in rights}
        if table != whole and any(right.columns for right in rights):
            said -= {
                right.verb for right in rights if right.columns
            }  # a partition is reached through its table
        if held != said:
            wrong.append((table, held, said))
        if service in ("worker", "client") and whole in CREDENTIALS and held:
            wrong.append((table, held, "is a credential"))
        if service == "look":
            secret = READ_BY_LOOK_IN_PART.get(whole, set())
            if held - {"select"} or readable & secret or (whole in HIDDEN_FROM_LOOK and readable):
                wrong.append((table, held, readable & secret))
    await connection.close()
    assert not wrong
    assert set(tables.values()) >= set(TABLES) | CREDENTIALS


async def may_truncate(connection: asyncpg.Connection[asyncpg.Record], table: str) -> bool:
    try:
        async with connection.transaction():
            await connection.execute(f'lock table "{table}" in access exclusive mode nowait')
            return bool(await connection.fetchval("select has_table_privilege($1, 'truncate')", table))
    except (asyncpg.InsufficientPrivilegeError, asyncpg.LockNotAvailableError):
        return False


async def test_a_function_with_the_owners_rights_is_fenced(
    database: str, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    functions = await owner.fetch(ALL_FUNCTIONS)
    definers = {row["name"]: row for row in functions if row["definer"]}
    assert set(definers) == set(FUNCTIONS)
    for name, row in definers.items():
        assert "search_path=public, pg_temp" in row["settings"], name
        assert not row["public"], name
        for service in SERVICES:
            connection = await asyncpg.connect(as_service(database, service))
            allowed = await connection.fetchval(
                "select has_function_privilege(oid, 'execute') from pg_proc where oid = $1::oid", row["oid"]
            )
            await connection.close()
            assert allowed is (service in FUNCTIONS[name]), (name, service)


async def test_no_role_makes_anything_in_the_schema(database: str) -> None:
    for service in SERVICES:
        connection = await asyncpg.connect(as_service(database, service))
        for sql in (
            "create table mine (id integer)",
            "create function mine() returns integer language sql as 'select 1'",
            "alter table execution add column mine integer",
            "drop table execution",
            "alter function submit_executions owner to current_user",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(sql)
        await connection.close()


async def test_a_table_of_ones_own_deceives_no_function(database: str) -> None:
    """A temporary table of the name of ours stands before it on the usual path."""
    connection = await asyncpg.connect(as_service(database, "worker"))
    await connection.execute("create temporary table execution (id uuid, namespace_id integer, claim uuid)")
    await connection.execute("create temporary table payload (execution_id uuid, params jsonb)")
    await connection.execute(
        "insert into execution values ('00000000-0000-0000-0000-000000000001', 1, '00000000-0000-0000-0000-000000000002')"
    )
    await connection.execute(
        """insert into payload values ('00000000-0000-0000-0000-000000000001',
        '{"$secrets": [[["p"], [{"secret": "pin"}]]]}')"""
    )
    owner = await asyncpg.connect(database)
    await owner.execute(
        "insert into secret (tenant, name, sealed, data_key, master_key, set_by) values ('t', 'pin', '', '', 'k', 'ada');"
        "insert into namespace (name, action, kind, queue) values ('t::a::b', 'a.b', 'action', 'work.default')"
    )
    await owner.execute("update namespace set name = 't::a::b'")
    await owner.close()
    rows = await connection.fetch(
        "select * from secrets_of_attempt('00000000-0000-0000-0000-000000000001', "
        "'00000000-0000-0000-0000-000000000002', '{pin}')"
    )
    assert not rows
    await connection.close()


async def test_worker_receives_only_secrets_of_its_executions(database: str) -> None:
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.apply(*shop.ALL)
        for name in ("pin", "other"):
            await secrets.put(house.session, "public", name, "a secret", by="ada")
        id = await house.client.start("shop.count", secrets={"words": "pin"})
        connection = await asyncpg.connect(as_service(database, "worker"))
        process = "00000000-0000-0000-0000-000000000009"

        async def named(*names: str) -> list[str]:
            rows = await connection.fetch(
                "select name from secrets_of_attempt($1, $2, $3)", id, process, names
            )
            return [row["name"] for row in rows]

        assert await named("pin", "other") == []
        await house.rows(
            "update execution set status = 'scheduled' where id = $1 and status = 'requested'", id
        )
        await house.rows(
            "update execution set status = 'running', claim = $2, attempt = 1 where id = $1", id, process
        )
        assert await named("pin", "other") == ["pin"]
        await connection.close()


WRITTEN = "set penstock.moves = 'written'"
"""What a function of the owner sets where it writes the moves itself. Any session can set it."""


@pytest.fixture
async def shop_house(database: str) -> AsyncIterator[Installation]:
    async with Installation(database, None) as house:
        await house.apply(*shop.ALL)
        yield house


@pytest.mark.parametrize("service", ["executor", "worker", "api", "client"])
async def test_illegal_move_is_refused_whatever_the_session_sets(
    database: str, shop_house: Installation, service: str
) -> None:
    id = await shop_house.client.start("shop.count", {"words": "a"})
    connection = await asyncpg.connect(as_service(database, service))
    await connection.execute(WRITTEN)
    refusal = "permission denied" if service == "client" else "illegal move"
    with pytest.raises(asyncpg.PostgresError, match=refusal):
        await connection.execute("update execution set status = 'completed' where id = $1", id)
    await connection.close()
    assert (await shop_house.client.get(id)).status in ("requested", "scheduled")


@pytest.mark.parametrize("service", ["executor", "worker", "api"])
async def test_move_is_in_the_history_whatever_the_session_sets(
    database: str, shop_house: Installation, service: str
) -> None:
    id = await shop_house.client.start("shop.count", {"words": "a"})
    connection = await asyncpg.connect(as_service(database, service))
    await connection.execute(WRITTEN)
    await connection.execute(
        "update execution set status = 'running', attempt = 1, claim = $2 where id = $1", id, new_id()
    )
    await connection.execute(
        "insert into execution (id, status, namespace_id, definition_id) "
        "select '00000000-0000-0000-0000-000000000007', 'requested', namespace_id, definition_id "
        "from execution where id = $1",
        id,
    )
    await connection.close()
    rows = await shop_house.rows("select new from history where execution_id = $1 order by at", id)
    assert [row["new"] for row in rows][-1] == "running"
    assert await shop_house.rows(
        "select from history where execution_id = '00000000-0000-0000-0000-000000000007'"
    )


@pytest.mark.parametrize("service", SERVICES)
async def test_no_role_changes_the_history(
    database: str, owner: asyncpg.Connection[asyncpg.Record], shop_house: Installation, service: str
) -> None:
    id = await shop_house.client.start("shop.count", {"words": "a"})
    tables = [
        row["name"]
        for row in await owner.fetch(ALL_TABLES)
        if row["whole"] in ("history", "subscribed_move")
        and (row["whole"] == "history" or service != "executor")
    ]
    assert len(tables) > 2
    connection = await asyncpg.connect(as_service(database, service))
    for table in tables:
        for sql in (
            f"insert into {table} default values",
            f"update {table} set attempt = 7",
            f"delete from {table}",
            f"truncate {table}",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(sql)
    for sql in (
        "select execution_moved()",
        "select execution_inserted()",
        "create temporary table mine (id uuid); "
        "create trigger mine after insert on mine execute function execution_inserted()",
    ):
        with pytest.raises((asyncpg.InsufficientPrivilegeError, asyncpg.FeatureNotSupportedError)):
            await connection.execute(sql)
    await connection.close()
    rows = await shop_house.rows("select new from history where execution_id = $1 order by at", id)
    assert [row["new"] for row in rows] == ["requested", "scheduled"]


async def test_executor_deletes_history_of_past_days_alone(
    database: str, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    id = new_id()
    await owner.execute(
        "insert into history (execution_id, at, new, attempt) select $1, now() - make_interval(days => n), 'requested', 0 "
        "from unnest(array[0, 40]) n",
        id,
    )
    connection = await asyncpg.connect(as_service(database, "executor"))
    with pytest.raises(asyncpg.RaiseError, match="a day at least"):
        await connection.fetch("select from old_history(0, 10)")
    places = [row["place"] for row in await connection.fetch("select place from old_history(1, 10)")]
    assert len(places) == 1
    everywhere = await owner.fetch("select ctid::text as place from history where execution_id = $1", id)
    await connection.fetch("select delete_old_history($1)", [row["place"] for row in everywhere] + places)
    await connection.close()
    assert await owner.fetchval("select count(*) from history where execution_id = $1", id) == 1


@pytest.mark.parametrize("service", ["executor", "worker", "api"])
@pytest.mark.parametrize("forged", ["status = completed", "finished"])
async def test_role_inserts_no_execution_that_has_ended(
    database: str, shop_house: Installation, service: str, forged: str
) -> None:
    id = await shop_house.client.start("shop.count", {"words": "a"})
    status, finished = ("completed", None) if forged != "finished" else ("requested", "now")
    connection = await asyncpg.connect(as_service(database, service))
    with pytest.raises(asyncpg.PostgresError, match="an execution begins as"):
        await connection.execute(
            "insert into execution (id, status, finished_at, namespace_id, definition_id) "
            "select $2, $3, $4::text::timestamptz, namespace_id, definition_id from execution where id = $1",
            id,
            new_id(),
            status,
            finished,
        )
    await connection.close()
    assert len(await shop_house.rows("select from execution")) == 1


async def test_functions_of_the_owner_take_no_setting_of_the_session(
    database: str, shop_house: Installation
) -> None:
    """A client submits, and a worker claims and ends: each move is written where the session says that it is."""
    client = await asyncpg.connect(as_service(database, "client"))
    worker = await asyncpg.connect(as_service(database, "worker"))
    first = await shop_house.client.start("shop.count", {"words": "a"})
    [known] = await shop_house.rows(
        "select e.namespace_id, e.definition_id, n.queue from execution e join namespace n on n.id = e.namespace_id "
        "where e.id = $1",
        first,
    )
    ids = [new_id(), new_id()]
    for connection in (client, worker):
        await connection.execute(WRITTEN)
    await client.fetch(
        "select from submit_executions($1, $2, $3, array['{}', '{}'], null, array['{}', '{}'], array[0, 0]::smallint[], null, "
        "null, null, null, null, true)",
        ids,
        [known["namespace_id"]] * 2,
        [known["definition_id"]] * 2,
    )
    process = new_id()
    await shop_house.rows(
        "update execution set status = 'scheduled' where id = any ($1) and status = 'requested'", ids
    )
    await worker.execute(WRITTEN)
    await worker.fetch(
        "select from claim_executions($1, $2, $3, 10, $4, $5, '{}'::integer[])",
        process,
        new_id(),
        ids,
        known["queue"],
        [known["definition_id"]],
    )
    # The second one has a canceler, and so goes to finish_attempts.
    await shop_house.rows("update execution set ends_as = 'canceled' where id = $1", ids[1])
    await worker.execute(WRITTEN)
    for id in ids:
        await worker.fetch(
            "select from finish_completed($1, array[$2::uuid], array[1], array['1'], '{}'::uuid[])",
            process,
            id,
        )
    await client.close()
    await worker.close()
    for id in ids:
        execution = await shop_house.client.get(id)
        rows = await shop_house.rows("select new from history where execution_id = $1 order by at", id)
        moves = [row["new"] for row in rows]
        assert moves[:3] == ["requested", "scheduled", "running"]
        assert moves[-1] == execution.status != "running"


async def test_worker_stores_no_definition_but_workflows_of_items(
    database: str, shop_house: Installation
) -> None:
    connection = await asyncpg.connect(as_service(database, "worker"))
    for sql in (
        "insert into definition (kind, ref, digest, body) values ('rule', 'a.b', 'x', '{}')",
        "insert into catalog (kind, ref, definition_id) select kind, 'shop.other', id from definition limit 1",
        "update catalog set enabled = false",
        "delete from catalog",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(sql)
    store = "select store_item_workflow($1, 'x', $2::text::jsonb)"
    tasks = '{"tasks": [{"name": "item", "action": "%s"}]}'
    for ref, body in (
        ("shop.count", tasks % "shop.count"),
        ("shop.in_steps", tasks % "shop.in_steps"),
        ("shop.count-items", tasks % "shop.charge"),
        ("shop.count-items", "{}"),
        ("shop.count-items", '{"tasks": [{"action": "shop.count"}, {"action": "shop.count"}]}'),
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.fetch(store, ref, body)
    assert await connection.fetchval(store, "shop.count-items", tasks % "shop.count") is True
    assert await connection.fetchval(store, "shop.count-items", tasks % "shop.count") is False
    await connection.close()


async def test_services_of_a_flow_run_as_their_roles(make_house: object, house: Installation) -> None:
    await house.start(*shop.ALL)
    assert await house.client.run("shop.count", {"words": "a b"}, timeout=30) == 2
    rows = await house.rows(
        "select distinct split_part(application_name, ':', 1) as service, usename::text as role from pg_stat_activity "
        "where datname = current_database() and application_name like any ('{executor:%,worker:%}')"
    )
    assert {(row["service"], row["role"].rpartition("_")[2]) for row in rows} == {
        ("executor", "executor"),
        ("worker", "worker"),
    }
    await house.sound()


async def test_a_client_starts_publishes_and_waits(
    database: str, broker: str | None, make_house: object, house: Installation
) -> None:
    await house.start(*shop.ALL)
    settings = house.settings(database_url=SecretStr(as_service(database, "client")))
    async with Client.connect(settings) as client:
        assert await client.run("shop.count", {"words": "a b"}, timeout=30) == 2
        ids = await client.start_many("shop.charge", [{"order": n} for n in range(20)])
        assert [await client.result(id, timeout=30) for id in ids]
        event = await client.publish("shop.order_placed", {"id": 7, "amount": 500})
        await house.until("select 1 from enforcement where event_id = $1", event)
        assert (await client.get(ids[0])).status == "completed"
        assert await client.history(ids[0])
        assert await client.attempts(ids[0]) is not None
        from penstock.errors import NotAllowed

        with pytest.raises(NotAllowed):
            await client.cancel(ids[0])
    await house.quiet()


@pytest.mark.parametrize("service", ["api", "executor"])
async def test_services_that_look_after_all_may_examine_it(
    database: str, house: Installation, service: str
) -> None:
    """The API has a route for each of both."""
    settings = house.settings(database_url=SecretStr(as_service(database, service)))
    async with Client.connect(settings) as client:
        assert [one.name for one in await check(client.session)] == [one.name for one in INVARIANTS]
    assert "roles" in {finding.what for finding in await examine(settings)}
