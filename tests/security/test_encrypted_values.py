"""The values of an encrypted tenant: one marker goes in wherever a user's value does, and all that is stored is searched for it.

The search shares nothing with the code that seals. A second tenant does the same in clear, which shows that the flows reach the
tables."""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import UUID

import aio_pika
import asyncpg
import httpx
import orjson
import pytest
from aio_pika.abc import AbstractIncomingMessage
from pydantic import SecretStr

from penstock import (
    AskInquiry,
    Defer,
    DurableContext,
    Later,
    Limit,
    Rule,
    Schedule,
    Trigger,
    action,
    later,
    trigger,
)
from penstock.client.client import Client
from penstock.client.inquiries import listed
from penstock.errors import ConfigurationError, Conflict, DefinitionError, ExecutionFailed, InvalidInput
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml
from penstock.operate import encryption, outside, secrets
from penstock.operate.outside import Report
from penstock.run.context import current
from penstock.store.events.event_list import EventFilter
from penstock.store.events.event_list import page as events_page
from penstock.store.executions import log_lines
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.executions.execution_list import page as executions_page
from penstock.store.executions.log_lines import NewLine
from penstock.store.outbox import dead_letters, queues
from penstock.store.outbox.dead_letters import KeptLetter
from penstock.store.session import codec, sealed_arguments
from penstock.store.session.database import Session
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_executor import expired_rows_export
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY, OTHER
from tests.security.secret_search import decoded, readings
from tests.security.test_provenance import send
from tests.servers.management import Api
from tests.servers.rabbitmq import RabbitMQ

pytestmark = pytest.mark.either_transport

CLEAR, SEALED = "open", "acme"
MARKERS = {SEALED: "zebra-encrypted", CLEAR: "zebra-in-clear"}
CAP = 4096

log = logging.getLogger("hidden")
seen: list[Any] = []
"""The parameters of each call of an action."""


@action(pack="hidden", limits=[Limit(20, by="value.inner")], on_success="hidden.after")
async def echo(value: Any) -> Any:
    seen.append(value)
    print("printed", value)
    log.warning("logged %s", value)
    return {"got": value}


@action(pack="hidden")
async def after(execution: str, status: str, result: Any, error: Any) -> Any:
    return [status, result]


@action(pack="hidden", retry={"max_attempts": 2, "initial_delay": 0.05})
async def fails(value: str) -> None:
    raise ValueError(f"no {value}")


@action(pack="hidden")
async def defers(value: str) -> Any:
    if current().state is None:
        raise Defer(delay=0.1, state={"kept": value})
    return current().state


@action(pack="hidden")
async def asks(value: str) -> None:
    raise AskInquiry(f"Is it {value}?", assignee="ada", default={"was": value}, timeout=600)


@action(pack="hidden")
async def asks_twice(value: str) -> Any:
    answers = list(current().answers)
    if len(answers) < 2:
        raise AskInquiry(f"{len(answers)}: {value}?", resume=True)
    return answers


@action(pack="hidden")
async def large(value: str) -> list[str]:
    return [value] * 1000


@action(pack="hidden", retry={"max_attempts": 2, "initial_delay": 0.05})
async def waits_outside(value: str) -> Later:
    return later(f"outside-{current().attempt}", timeout=600, heartbeat=500)


paid = Trigger("hidden.paid")


@action(pack="hidden")
async def steps(ctx: DurableContext, value: str) -> Any:
    made = await ctx.step("made", lambda: {"step": value})
    ctx.set("where", value)
    child = await ctx.run(echo, value={"inner": value})
    mapped = await ctx.map(echo, [{"value": {"inner": value}}, {"value": value}])

    def refuse() -> None:
        raise RuntimeError(value)

    try:
        await ctx.step("refused", refuse)
    except Exception as error:
        log.warning("caught %s", error)
    event = await ctx.wait_for(paid, when="event.payload.order == order", order=value)
    told = await ctx.signal("told")
    return [made, child, mapped, event["payload"], told]


whole = from_yaml("""
workflow: hidden.whole
parameters: {value: {}}
vars: {first: none}
tasks:
  one: {action: hidden.echo, input: {value: {inner: "{{ parameters.value }}"}}, publish: {first: "{{ result.got }}"}}
  each:
    action: hidden.echo
    needs: [one]
    with_items: "{{ [parameters.value, parameters.value, vars.first] }}"
    concurrency: 1
    input: {value: "{{ item }}"}
  bad: {action: hidden.fails, needs: [one], input: {value: "{{ parameters.value }}"}, allow_failure: true}
  payment: {wait_for_event: {trigger: hidden.paid, filter: event.payload.order == parameters.value}, needs: [each]}
  question: {inquiry: {prompt: "Was it {{ parameters.value }}?"}, needs: [payment]}
output: {all: "{{ [tasks.each.result, tasks.question.result] }}"}
""")
came = Trigger("hidden.came")
rule = Rule(
    "hidden.on_came",
    trigger=came,
    when="payload.value",
    action=echo,
    params={"value": {"inner": "{{ payload.value }}"}},
)
broken = Rule("hidden.broken", trigger=came, action=fails, params={"value": "{{ payload.value | int }}"})
ALL = (
    echo,
    after,
    fails,
    defers,
    asks,
    asks_twice,
    large,
    waits_outside,
    paid,
    steps,
    whole,
    came,
    rule,
    broken,
)

REACHED = {
    *("payload", "result", "attempt", "log_line", "inquiry", "step", "workflow_variable", "workflow_item"),
    *("workflow_kept", "workflow_command", "event", "enforcement", "execution", "history", "workflow_task"),
    *("dead_letter", "early_outcome", "outside_wait"),
}
"""Tables in which the tenant in clear leaves its marker. More tables are searched: all of them."""
EVERY_TABLE = """
select c.relname::text as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1
"""


@pytest.fixture
async def house(database: str, broker: str | None, tmp_path: Path) -> AsyncIterator[Installation]:
    (tmp_path / "results").mkdir()
    (tmp_path / "exports").mkdir()
    settings: dict[str, Any] = {
        "secrets_key": SecretStr(KEY),
        "payload_cap": CAP,
        "result_store": f"file://{tmp_path / 'results'}",
        "export_folder": tmp_path / "exports",
    }
    async with Installation(database, broker, **settings) as installation:
        yield installation


async def flows(house: Installation, tenant: str, value: str) -> dict[str, UUID]:
    """Run everything that takes, keeps and gives values. Returns the executions by what they were."""
    client = house.client

    async def start(name: str, **more: Any) -> UUID:
        return await client.start(
            f"hidden.{name}", more.pop("params", {"value": value}), tenant=tenant, **more
        )

    async def done(id: UUID) -> None:
        await house.until("select 1 from execution where id = $1 and finished_at is not null", id, seconds=60)

    async def waits(id: UUID, nth: int = 1) -> None:
        await house.until(
            "select 1 from inquiry i join execution e on e.id = i.execution_id where e.id = $1 "
            "and e.status = 'waiting' and i.status = 'created' and e.attempt >= $2",
            id,
            nth,
            seconds=60,
        )

    ids = {
        "echo": await start("echo", params={"value": {"inner": value}}, key="once"),
        "fails": await start("fails"),
        "defers": await start("defers"),
        "large": await start("large"),
        "asks": await start("asks"),
        "asks_twice": await start("asks_twice"),
        "waits_outside": await start("waits_outside"),
        "steps": await start("steps"),
        "whole": await start("whole"),
    }
    assert await start("echo", params={"value": {"inner": value}}, key="once") == ids["echo"]
    with pytest.raises(Conflict):
        await start("echo", params={"value": "other"}, key="once")
    for name in ("echo", "fails", "defers", "large"):
        await done(ids[name])
    await waits(ids["asks"])
    [asked] = [i for i in await listed(house.session, tenants=[tenant]) if i.execution_id == ids["asks"]]
    assert asked.prompt == f"Is it {value}?"
    await client.answer(ids["asks"], {"answered": value}, by="ada")
    await reports(house, tenant, ids["waits_outside"], value)
    for nth in (1, 2):
        await waits(ids["asks_twice"], nth)
        await client.answer(ids["asks_twice"], f"{nth} {value}", by="ada")
    event = await client.publish("hidden.came", {"value": value}, tenant=tenant, key="event")
    assert await client.publish("hidden.came", {"value": value}, tenant=tenant, key="event") == event
    with pytest.raises(Conflict):
        await client.publish("hidden.came", {"value": "other"}, tenant=tenant, key="event")
    await house.until("select 1 from enforcement where event_id = $1 and error is not null", event)
    kept = KeptLetter(
        queues.EVENT_RECEIVED,
        f"InvalidInput: {value} is not a number",
        None,
        "a",
        orjson.dumps({"value": value}),
        orjson.dumps({"x-penstock-trigger": "hidden.came", "tenant": tenant}).decode(),
        tenant,
        id=new_id(),
    )
    async with house.session.transaction() as tx:
        await dead_letters.keep(tx, [kept])
    letter = await dead_letters.find(house.session, kept.id)
    assert letter is not None
    assert orjson.loads(letter.body) == {"value": value}
    await house.until(
        "select 1 from event_wait w join execution e on e.id = w.execution_id where w.tenant = $1 having count(*) = 2",
        tenant,
        seconds=60,
    )
    await client.publish("hidden.paid", {"order": "another"}, tenant=tenant)
    await client.publish("hidden.paid", {"order": value, "more": value}, tenant=tenant)
    await client.signal(ids["steps"], "told", {"told": value})
    [question] = await house.until(
        "select execution_id as id from inquiry i join execution e on e.id = i.execution_id where e.parent = $1",
        ids["whole"],
        seconds=60,
    )
    await client.answer(question["id"], value, by="ada")
    await done(ids["steps"])
    await done(ids["whole"])
    ids["again"] = await client.rerun(ids["whole"], from_task="question", by="ada")
    [question] = await house.until(
        "select execution_id as id from inquiry i join execution e on e.id = i.execution_id where e.parent = $1",
        ids["again"],
        seconds=60,
    )
    await client.command(ids["again"], "set_result", task="question", value=value, by="ada")
    await done(ids["again"])
    return ids


async def reports(house: Installation, tenant: str, id: UUID, value: str) -> None:
    """Report a progress and a failure to the first attempt, and a result to the second. Keep one early outcome."""
    for attempt, report in (
        (1, Report("progress", 0.5, f"half of {value}")),
        (1, Report("error", f"no {value}")),
        (2, Report("progress", 0.5, f"half of {value}")),
        (2, Report("result", {"reported": value})),
    ):
        await house.until(
            "select 1 from outside_wait w join execution e on e.id = w.execution_id "
            "where e.id = $1 and e.status = 'waiting' and w.attempt = $2 and w.due_at is not null",
            id,
            attempt,
        )
        if report.kind == "progress":
            await outside.progress(house.session, id, attempt, report)
        else:
            async with house.session.transaction() as tx:
                assert await outside.report(tx, CAP, id, attempt, report) == "settled"
            house.client.publish_staged(tx)
    async with house.session.transaction() as tx:
        assert await outside.report_by_id(tx, CAP, tenant, "early", Report("result", value), "test") == []


async def in_tables(database: str, marker: str) -> set[str]:
    """The tables that show the marker, in any form, read without the code that opens values."""
    connection = await asyncpg.connect(database)
    shown = set()
    try:
        for (name,) in await connection.fetch(EVERY_TABLE):
            for (text,) in await connection.fetch(f'select t::text from "{name}" t'):
                if shows(text, marker):
                    shown.add(name.partition("_2")[0])
                for part in text.replace("\\\\x", "\\x").split("\\x")[1:]:
                    digits = part[: len(part) - len(part.lstrip("0123456789abcdef"))]
                    if marker.encode().hex() in digits:
                        shown.add(name)
    finally:
        await connection.close()
    return {name.removesuffix("_default") for name in shown}


def in_files(folder: Path, marker: str) -> list[str]:
    shown = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".gz":
                content = gzip.decompress(content)
            if marker.encode() in content:
                shown.append(path.name)
    return shown


def shows(text: str, marker: str) -> bool:
    """Return True if a text has the marker in any form."""
    return any(marker in reading for reading in (*readings(text), *decoded(text)))


async def test_no_value_of_an_encrypted_tenant_is_stored(
    house: Installation, database: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    await secrets.put(house.session, SEALED, "token", "a-secret-of-acme", by="ada")
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.start(*ALL)
    ids = {tenant: await flows(house, tenant, marker) for tenant, marker in MARKERS.items()}
    shown = await in_tables(database, MARKERS[CLEAR])
    assert shown >= REACHED, REACHED - shown
    assert await in_tables(database, MARKERS[SEALED]) == set()
    assert in_files(tmp_path / "results", MARKERS[CLEAR])
    assert not in_files(tmp_path / "results", MARKERS[SEALED])
    await through_the_api(house)
    output = "".join(capfd.readouterr())
    assert "worker.started" in output
    assert "executor.started" in output
    assert not shows(output, MARKERS[SEALED])
    await _as_expected(house, ids[SEALED], MARKERS[SEALED])
    await _as_expected(house, ids[CLEAR], MARKERS[CLEAR])
    await house.sound()


async def through_the_api(house: Installation) -> None:
    """Start, show and misspell over HTTP, so that the log of an API is in the output as well."""
    backend = Backend.of(house.client)
    backend.settings = house.settings(api_access="open")
    app = make_app(backend)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    value = MARKERS[SEALED]
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as call:
        for action_ref, parameters, status in (
            ("hidden.echo", {"value": value}, 201),
            ("hidden.nothing", {"value": value}, 404),
            ("hidden.fails", {"value": {"of": value}}, 422),
        ):
            body = {"action": action_ref, "parameters": parameters, "tenant": SEALED}
            answer = await call.post("/api/v1/executions", json=body)
            assert answer.status_code == status, answer.text
            if status == 201:
                await house.client.result(UUID(answer.json()["id"]), timeout=60)
                assert value in (await call.get(f"/api/v1/executions/{answer.json()['id']}")).text
    await backend.changes.close()


async def test_no_waiting_fire_shows_a_value(house: Installation, database: str) -> None:
    """The template has the marker in two pieces: a definition is code, and stays in clear."""
    await encryption.encrypt(house.session, SEALED, by="ada")
    schedules = [
        Schedule(
            f"hidden.{tenant}",
            action=echo,
            params={"value": f"{{{{ '{marker[:6]}' ~ '{marker[6:]}' }}}}"},
            every="1d",
            overlap="queue",
            tenant=tenant,
        )
        for tenant, marker in MARKERS.items()
    ]
    await house.apply(*ALL, *schedules)
    await house.executor()
    for tenant in MARKERS:
        for _ in range(3):  # without a worker the first run stays open, and the others wait for its end
            await house.client.schedules.run(f"hidden.{tenant}")
    await house.until("select 1 from waiting_fire having count(*) >= 4")
    assert await in_tables(database, MARKERS[CLEAR]) == {"payload", "waiting_fire"}
    assert await in_tables(database, MARKERS[SEALED]) == set()
    seen.clear()
    await house.worker(*ALL)
    await house.until(
        "select 1 from execution e join namespace n on n.id = e.namespace_id "
        "where n.action = 'hidden.echo' and e.finished_at is not null having count(*) = 6",
        seconds=60,
    )
    assert sorted(seen) == sorted([*MARKERS.values()] * 3)


begun = from_yaml("""
workflow: hidden.begun
parameters: {value: {}}
vars: {first: "{{ parameters.value }}"}
tasks:
  one: {action: hidden.give, input: {value: "{{ parameters.value }}"}}
  two: {action: hidden.give, input: {value: "{{ vars.first }}"}, needs: [one]}
output: "{{ [tasks.one.result, tasks.two.result, vars.first] }}"
""")


async def test_workflow_that_begins_in_its_submit_shows_no_value(house: Installation, database: str) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.start(give, begun)
    for tenant, marker in MARKERS.items():
        for _ in range(5):
            id = await house.client.start("hidden.begun", {"value": marker}, tenant=tenant)
            assert await house.client.result(id, timeout=60) == [marker] * 3
            await house.client._submits.settle()
        [row] = await house.rows(
            "select h.actor from history h join execution e on e.id = h.execution_id"
            " where e.parent = $1 and e.task = 'one' and h.old is null",
            id,
        )
        assert row["actor"].startswith("client:")
    assert {"payload", "result", "workflow_variable"} <= await in_tables(database, MARKERS[CLEAR])
    assert await in_tables(database, MARKERS[SEALED]) == set()


@asynccontextmanager
async def copied_messages(server: RabbitMQ, address: str) -> AsyncIterator[list[str]]:
    """Collect each message that passes the vhost, with its headers. RabbitMQ copies what is published and what is delivered
    (its firehose), whatever queue and exchange it goes through."""
    parts = urlsplit(address)
    api = Api(
        parts.hostname or "localhost",
        server.api_port,
        unquote(parts.username or "guest"),
        unquote(parts.password or "guest"),
    )
    vhost = unquote(parts.path.lstrip("/"))
    api.call("PUT", f"vhosts/{vhost}", {"tracing": True})
    copies: list[str] = []
    async with await aio_pika.connect_robust(address) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        await queue.bind("amq.rabbitmq.trace", "#")

        async def copy(message: AbstractIncomingMessage) -> None:
            copies.append(
                f"{message.routing_key} {message.headers} {message.body.decode('utf-8', 'replace')}"
            )

        await queue.consume(copy, no_ack=True)
        yield copies
    api.call("PUT", f"vhosts/{vhost}", {"tracing": False})


async def test_no_message_on_the_broker_shows_a_value(
    database: str, vhost: str, rabbitmq_server: RabbitMQ, tmp_path: Path
) -> None:
    (tmp_path / "results").mkdir()
    async with (
        copied_messages(rabbitmq_server, vhost) as copies,
        Installation(
            database,
            vhost,
            secrets_key=SecretStr(KEY),
            payload_cap=CAP,
            result_store=f"file://{tmp_path / 'results'}",
        ) as house,
    ):
        await encryption.encrypt(house.session, SEALED, by="ada")
        await house.start(*ALL)
        await flows(house, SEALED, MARKERS[SEALED])
        # A foreign producer sends in clear, and the value is on the broker as it was sent: the copies show it.
        body = orjson.dumps({"value": MARKERS[CLEAR]})
        await asyncio.to_thread(send, vhost, "1", body, "hidden.came", headers={"tenant": CLEAR})
        await house.until("select 1 from event where tenant = $1", CLEAR, seconds=60)
        await house.quiet()
        async with asyncio.timeout(30):
            while not any(shows(copy, MARKERS[CLEAR]) for copy in copies):
                await asyncio.sleep(0.05)
    assert {copy.partition(".")[0] for copy in copies} >= {"publish", "deliver"}
    assert any("execution." in copy for copy in copies)
    assert [copy for copy in copies if shows(copy, MARKERS[SEALED])] == []


async def _as_expected(house: Installation, ids: dict[str, UUID], value: str) -> None:
    result = house.client.result
    assert await result(ids["echo"]) == {"got": {"inner": value}}
    assert await result(ids["defers"]) == {"kept": value}
    assert await result(ids["large"]) == [value] * 1000
    assert await result(ids["asks"]) == {"answered": value}
    assert await result(ids["asks_twice"]) == [f"1 {value}", f"2 {value}"]
    assert await result(ids["waits_outside"]) == {"reported": value}
    got = {"got": {"inner": value}}
    assert await result(ids["steps"]) == [
        {"step": value}, got, [got, {"got": value}], {"order": value, "more": value}, {"told": value}
    ]  # fmt: skip
    each = [{"got": value}, {"got": value}, {"got": {"inner": value}}]
    assert (await result(ids["whole"]))["all"] == [each, value]
    assert (await result(ids["again"]))["all"] == [each, value]
    with pytest.raises(ExecutionFailed, match=f"ValueError: no {value}"):
        await result(ids["fails"])
    shown = await house.client.get(ids["fails"])
    assert orjson.loads(shown.params or "") == {"value": value}
    assert value in (shown.reason or "")


@action(pack="hidden")
async def give(value: Any) -> Any:
    return value


@trigger(pack="hidden", every=3600)
async def polled(state: Any) -> Any:
    return state


async def _ended(house: Installation, id: UUID) -> tuple[str, str | None]:
    await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
    shown = await house.client.get(id)
    return shown.status, shown.error


async def test_archive_and_its_export_hold_no_value(
    house: Installation, database: str, tmp_path: Path
) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.start(give, archive_after=0.1, archive_retention_days=1, log_retention_days=1)
    ids = {
        tenant: await house.client.start("hidden.give", {"value": marker}, tenant=tenant)
        for tenant, marker in MARKERS.items()
    }
    for id in ids.values():
        await house.until("select 1 from archive where id = $1", id, seconds=60)
    for tenant, id in ids.items():  # a worker that was cut off writes its last lines now
        await log_lines.store(
            house.session, [NewLine(id, 1, 99, "stdout", MARKERS[tenant])], new_id(), "late"
        )
    assert {"archive", "log_line"} <= await in_tables(database, MARKERS[CLEAR])
    assert await in_tables(database, MARKERS[SEALED]) == set()
    folder = tmp_path / "exports"
    session = house.client.session
    raw = Session(session.pool, session.settings, session.cache, codec=session.codec, opens=False)
    [partition] = await house.rows(
        "select tableoid::regclass::text as name from archive where id = $1", ids[SEALED]
    )
    for format in ("jsonl", "parquet"):
        await expired_rows_export.partition(raw, partition["name"], folder, format)
    assert len(in_files(folder, MARKERS[CLEAR])) == 2
    assert not in_files(folder, MARKERS[SEALED])
    assert await house.client.result(ids[SEALED]) == MARKERS[SEALED]


async def test_rerun_with_other_parameters_waits_for_their_limit(
    house: Installation, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit groups by the digest of a parameter. This holds where a rerun brings the parameter, and for a limit that is
    newer than the keys that a process has read."""
    monkeypatch.setattr(codec, "PATHS_FRESH_S", 0.0)
    await encryption.encrypt(house.session, SEALED, by="ada")
    may_end = asyncio.Event()

    @action(pack="hidden", limits=[Limit(1, by="customer")])
    async def of_customer(customer: str, waits: bool = False) -> None:
        if waits:
            await may_end.wait()

    await house.start(of_customer)
    ended = await house.client.start("hidden.of_customer", {"customer": "one"}, tenant=SEALED)
    await _ended(house, ended)
    running = await house.client.start(
        "hidden.of_customer", {"customer": MARKERS[SEALED], "waits": True}, tenant=SEALED
    )
    await house.until("select from execution where id = $1 and status = 'running'", running)
    again = await house.client.rerun(ended, params={"customer": MARKERS[SEALED]}, by="ada")
    await house.until("select from execution where id = $1 and status <> 'requested'", again)
    rows = await house.rows(
        "select status, keys::text as keys from execution where id = any ($1)", [running, again]
    )
    assert {row["status"] for row in rows} == {"running", "queued"}
    [keys] = {row["keys"] for row in rows}
    assert "null" not in keys
    may_end.set()
    await _ended(house, running)
    await _ended(house, again)
    assert await in_tables(database, MARKERS[SEALED]) == set()


async def test_database_refuses_value_in_clear_and_of_other_tenant(
    house: Installation, database: str
) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.start(give)
    id = await house.client.start("hidden.give", {"value": 1}, tenant=SEALED)
    other = await house.client.start("hidden.give", {"value": 1}, tenant=CLEAR)
    await _ended(house, id)
    await _ended(house, other)
    connection = await asyncpg.connect(database)
    try:
        token = await connection.fetchval(
            "select params ->> '$sealed' from payload where execution_id = $1", id
        )
        for sql, of, value, code in (
            ("update payload set params = $2::jsonb where execution_id = $1", id, '{"value": 1}', "PN005"),
            ("update result set result = $2::jsonb where execution_id = $1", id, "1", "PN005"),
            (
                "update result set error = $2::jsonb where execution_id = $1",
                id,
                '{"traceback": "x"}',
                "PN005",
            ),
            (
                "update payload set params = $2::jsonb where execution_id = $1",
                other,
                orjson.dumps({"value": [{"$sealed": token}]}).decode(),
                "PN006",
            ),
        ):
            with pytest.raises(asyncpg.PostgresError) as refused:
                await connection.execute(sql, of, value)
            assert refused.value.sqlstate == code, (sql, refused.value)
    finally:
        await connection.close()
    with pytest.raises(InvalidInput, match="sealed for another tenant"):
        await house.client.start("hidden.give", {"value": {"$sealed": token}}, tenant=CLEAR)


async def test_token_in_row_of_other_tenant_stays_closed(house: Installation, database: str) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.start(give)
    id = await house.client.start("hidden.give", {"value": "zebra"}, tenant=SEALED)
    other = await house.client.start("hidden.give", {"value": 1}, tenant=CLEAR)
    await _ended(house, id)
    await _ended(house, other)
    connection = await asyncpg.connect(database)
    try:
        await connection.execute("alter table result disable trigger refuse_clear")
        await connection.execute(
            "update result set result = (select result from result where execution_id = $1) where execution_id = $2",
            id,
            other,
        )
        await connection.execute("update tenant_key set seals = false")
    finally:
        await connection.close()
    assert "zebra" in ((await house.client.get(id)).result or "")
    assert "zebra" not in ((await house.client.get(other)).result or "")


async def test_process_without_the_key_writes_and_runs_nothing(house: Installation, database: str) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.apply(give)
    await house.executor()
    await house.worker(give, secrets_key=None)
    async with Client.connect(house.settings(secrets_key=None)) as keyless:
        with pytest.raises(ConfigurationError, match="no master key"):
            await keyless.start("hidden.give", {"value": "zebra"}, tenant=SEALED)
        assert (
            await keyless.result(await keyless.start("hidden.give", {"value": 1}, tenant=CLEAR), timeout=30)
            == 1
        )
        id = await house.client.start("hidden.give", {"value": "zebra"}, tenant=SEALED)
        status, error = await _ended(house, id)
        assert (status, "this process has no master key" in (error or "")) == ("failed", True)
        assert "$sealed" in ((await keyless.get(id)).params or "")


async def test_values_open_after_rotation_of_either_key(
    house: Installation, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codec, "FRESH_S", 0.0)  # each process reads the keys each time
    first = await encryption.encrypt(house.session, SEALED, by="ada")
    with pytest.raises(Conflict):
        await encryption.encrypt(house.session, SEALED, by="ada")
    await house.start(give)
    before = await house.client.start("hidden.give", {"value": "before"}, tenant=SEALED, key="same")
    await _ended(house, before)
    second = await encryption.rotate(house.session, SEALED, by="ada")
    assert (first.number, second.number) == (1, 2)
    # A digest of contents stays the same.
    assert await house.client.start("hidden.give", {"value": "before"}, tenant=SEALED, key="same") == before
    after_it = await house.client.start("hidden.give", {"value": "after"}, tenant=SEALED)
    await _ended(house, after_it)
    connection = await asyncpg.connect(database)
    try:
        numbers = [
            await connection.fetchval("select split_part(params ->> '$sealed', '.', 1) from payload where execution_id = $1", id)
            for id in (before, after_it)
        ]  # fmt: skip
    finally:
        await connection.close()
    assert numbers == ["1", "2"]
    async with Client.connect(house.settings(secrets_key=SecretStr(f"{OTHER},{KEY}"))) as client:
        assert await secrets.rotate(client.session, force=True) == 2
    async with Client.connect(house.settings(secrets_key=SecretStr(OTHER))) as client:
        assert [await client.result(id) for id in (before, after_it)] == ["before", "after"]
    await encryption.decrypt(house.session, SEALED)
    clear = await house.client.start("hidden.give", {"value": MARKERS[CLEAR]}, tenant=SEALED)
    await _ended(house, clear)
    assert {"payload", "result"} <= await in_tables(database, MARKERS[CLEAR])
    assert await house.client.result(before) == "before"


async def test_process_learns_of_encryption_by_refusal(house: Installation, database: str) -> None:
    await house.start(give)
    assert (
        await house.client.result(await house.client.start("hidden.give", {"value": 1}, tenant=SEALED)) == 1
    )
    async with Client.connect(house.settings()) as other:
        await encryption.encrypt(other.session, SEALED, by="ada")
    id = await house.client.start("hidden.give", {"value": MARKERS[SEALED]}, tenant=SEALED)
    assert await house.client.result(id, timeout=30) == MARKERS[SEALED]
    assert await in_tables(database, MARKERS[SEALED]) == set()


async def test_searching_encrypted_values_is_refused(house: Installation) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    for tenant, tenants, is_refused in (
        (SEALED, None, True), (None, None, True), (None, [SEALED, CLEAR], True), (CLEAR, None, False), (None, [CLEAR], False),
    ):  # fmt: skip
        for page, filters in (
            (executions_page, ExecutionFilter(params={"value": 1}, tenant=tenant, tenants=tenants)),
            (events_page, EventFilter(payload={"value": 1}, tenant=tenant, tenants=tenants)),
        ):
            if is_refused:
                with pytest.raises(InvalidInput, match="nothing can be searched"):
                    await page(house.session, filters)  # type: ignore[arg-type]
            else:
                assert await page(house.session, filters) == []  # type: ignore[arg-type]


async def test_polls_and_encryption_of_their_tenant_refuse_each_other(house: Installation) -> None:
    await encryption.encrypt(house.session, "public", by="ada")
    with pytest.raises(DefinitionError, match="polls run in tenant public"):
        await house.apply(polled)
    await encryption.decrypt(house.session, "public")
    await house.apply(polled)
    with pytest.raises(Conflict, match="poll triggers run in tenant public"):
        await encryption.encrypt(house.session, "public", by="ada")


async def test_place_left_out_is_refused_instead_of_stored(
    house: Installation, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await encryption.encrypt(house.session, SEALED, by="ada")
    await house.apply(give)
    places = dict(sealed_arguments.STATEMENTS)
    del places["from place_alike("]
    monkeypatch.setattr(sealed_arguments, "STATEMENTS", places)
    sealed_arguments.places_of.cache_clear()
    monkeypatch.setattr(codec, "SETTLED_S", -1.0)
    try:
        with pytest.raises(ConfigurationError, match="params of payload would be in clear"):
            async with asyncio.timeout(20):
                await house.client.start("hidden.give", {"value": MARKERS[SEALED]}, tenant=SEALED)
    finally:
        sealed_arguments.places_of.cache_clear()
