"""The client over HTTP has the shape of the client, and raises its errors; and the command line that uses it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
import uvicorn
from opentelemetry import trace

from penstock import action
from penstock.cli import run
from penstock.client.http_client import HttpClient
from penstock.errors import (
    Conflict,
    ConnectionFailed,
    ExecutionFailed,
    InvalidInput,
    NotAllowed,
    NotAuthenticated,
    NotFound,
)
from penstock.language.terms.ids import new_id
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.tracing import trace_of
from tests.flows.shop import count
from tests.flows.traced import traced
from tests.penstock.cli.commands import penstock
from tests.penstock.cli.test_completion import completions, offers
from tests.penstock_api.conftest import Api


@action(pack="nobodys")
async def lonely() -> None: ...


@pytest.fixture
async def client(api: Api) -> AsyncIterator[HttpClient]:
    transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
    async with HttpClient("http://penstock", token=api.secrets["all"], transport=transport) as made:
        yield made


async def test_it_starts_waits_and_reads(client: HttpClient) -> None:
    id = await client.start("shop.count", {"words": "a b c"}, key="http-client")
    assert await client.start("shop.count", {"words": "a b c"}, key="http-client") == id
    assert await client.result(id, timeout=20) == 3
    assert await client.run("shop.count", {"words": "a"}, timeout=20) == 1
    assert await client.run(count.call("a b"), timeout=20) == 2
    assert await client.run(count, {"words": "a"}, timeout=20) == 1
    assert [move.new for move in await client.history(id)][-1] == "completed"
    assert (await client.why(id)).because == "ended"
    assert (await client.described(id))["params"] == {"words": "a b c"}
    listed = await client.executions(ExecutionFilter(action="shop.count"), limit=1000)
    assert id in [row.id for row in listed]
    assert "worker" in {process.kind for process in await client.workers.all()}
    assert await client.publish("shop.order_placed", {"id": 1})


async def test_starts_of_a_burst_are_one_execution(client: HttpClient, api: Api) -> None:
    times: list[float | str | timedelta] = [3600, "1h", timedelta(hours=1)]
    options: dict[str, Any] = {"debounce_key": "over-http", "at_most": timedelta(hours=2), "keep": "first"}
    ids = {await client.start("shop.count", {"words": str(n)}, debounce=n, **options) for n in times}
    assert len(ids) == 1
    [id] = ids
    answer = await client.why(id)
    assert (answer.because, answer.document()["facts"]["starts"]) == ("timer", 3)
    assert (await client.described(id))["params"] == {"words": "3600"}
    with pytest.raises(Conflict, match=str(id)):
        await client.start("shop.count", {"words": "a"}, debounce=3600, debounce_key="over-http")
    with pytest.raises(InvalidInput, match="`debounce` and `delay`"):
        await client.start("shop.count", {"words": "a"}, debounce=3600, delay=1)
    await client.cancel(id)


async def test_it_raises_the_errors_of_the_client(client: HttpClient, api: Api) -> None:
    with pytest.raises(NotFound, match="no action or workflow"):
        await client.start("shop.nothing")
    with pytest.raises(InvalidInput) as refused:
        await client.start("shop.count", {"word": 1})
    assert refused.value.hint
    await client.start("shop.count", {"words": "a"}, key="clash")
    with pytest.raises(Conflict):
        await client.start("shop.count", {"words": "b"}, key="clash")
    with pytest.raises(NotFound):
        await client.described(new_id())
    failed = await client.start("shop.flaky", {"failures": 9})
    with pytest.raises(ExecutionFailed, match="ended as failed") as error:
        await client.result(failed, timeout=20)
    [listed] = await client.executions(ExecutionFilter(action="shop.flaky"))
    assert listed.failure is not None
    assert str(error.value).endswith(f": {listed.failure}")
    assert (await client.described(failed))["failure"] == listed.failure
    assert f" ago: {listed.failure}" in (await client.why(failed)).sentence
    later = await client.start("shop.count", {"words": "a"}, delay=3600)
    with pytest.raises(TimeoutError):
        await client.result(later, timeout=0.2)
    await client.holds.hold("tenant", "elsewhere", reason="it moves", force=True)
    [hold] = await client.holds.all()
    assert (hold.kind, hold.name, hold.by, hold.reason) == ("tenant", "elsewhere", "token:all", "it moves")
    await client.holds.release("tenant", "elsewhere", "5/min")
    await client.holds.release("tenant", "elsewhere")
    with pytest.raises(NotFound, match="is not held"):
        await client.holds.release("tenant", "elsewhere")
    assert [await client.set_priority(later, 3) for _ in range(2)] == [1, 0]
    instant = datetime(2100, 1, 31, 9, tzinfo=UTC)
    assert await client.reschedule(later, at=instant, reason="later") == instant
    assert await client.reschedule(later, delay=7200) > datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidInput, match="both given"):
        await client.reschedule(later, at=instant, delay=1)
    assert await client.cancel(later) == 1
    with pytest.raises(Conflict, match="has ended"):
        await client.reschedule(later, delay=1)
    with pytest.raises(Conflict, match="has ended"):
        await client.set_priority(later, 4)
    transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
    async with HttpClient("http://penstock", transport=transport) as stranger:
        with pytest.raises(NotAuthenticated):
            await stranger.why(later)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with HttpClient(f"http://127.0.0.1:{port}") as nobody:
        with pytest.raises(ConnectionFailed, match="does not answer"):
            await nobody.why(later)


@pytest.fixture
async def server(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[str]:
    """The API on a port, and no database in the environment."""
    for name in ("PENSTOCK_DATABASE_URL", "PENSTOCK_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PENSTOCK_HOME", "/nonexistent")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = uvicorn.Server(uvicorn.Config(api.app, log_config=None, lifespan="off", access_log=False))
        task = asyncio.create_task(served.serve(sockets=[listener]))
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv("PENSTOCK_TOKEN", api.secrets["all"])
        monkeypatch.setenv("PENSTOCK_SERVER", address)
        yield address
        served.should_exit = True
        await task


@pytest.mark.parametrize(
    "filters",
    [
        ExecutionFilter(status=[]),
        ExecutionFilter(action=""),
        ExecutionFilter(key=""),
        ExecutionFilter(tenants=["no-such"]),
        ExecutionFilter(ended=True),
    ],
    ids=str,
)
async def test_condition_that_no_request_can_say_is_refused(
    client: HttpClient, filters: ExecutionFilter
) -> None:
    """A request without the condition would cancel every execution."""
    with pytest.raises(InvalidInput):
        await client.cancel_chosen(filters, reason="a test", dry_run=True)
    with pytest.raises(InvalidInput):
        await client.executions(filters)


async def test_many_of_a_label_are_cancelled(client: HttpClient) -> None:
    for customer in ("over-http", "over-http", "another"):
        await client.start("shop.charge", {"order": 1}, delay=3600, labels={"customer": customer})
    for customer, number in (("over-http", 2), ("another", 1)):
        chosen = ExecutionFilter(labels={"customer": customer}, status=["requested"])
        assert await client.cancel_chosen(chosen, reason="a test") == number


async def test_wait_without_scope_read_starts_nothing(
    server: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await api.token("starter", "start:shop.*")
    monkeypatch.setenv("PENSTOCK_TOKEN", api.secrets["starter"])
    [[before]] = await api.house.rows("select count(*) from execution")
    said = await penstock("run", "shop.count", "words=a", "--wait")
    assert said.code == 1
    assert (
        "lacks the scope 'read', so it cannot wait for the result of shop.count; nothing was started"
        in said.err
    )
    assert "--scope read --scope start:shop.count" in said.err
    async with HttpClient(server, token=api.secrets["starter"]) as client:
        with pytest.raises(NotAllowed, match="lacks the scope 'read'"):
            await client.run("shop.count", {"words": "a"})
    [[after]] = await api.house.rows("select count(*) from execution")
    assert after == before
    assert (await penstock("run", "shop.count", "words=a")).code == 0


async def test_a_run_over_http_says_that_no_worker_is_there(
    server: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "PATIENCE", 0.1)
    await api.house.apply(lonely)
    warning = "no worker that has nobodys.lonely is running"
    said = await penstock("run", "nobodys.lonely", "--json")
    assert warning in said.err
    waited = await penstock("run", "nobodys.lonely", "--wait", "--timeout", "0.5")
    assert (waited.code, warning in waited.err, "s, and continues" in waited.err) == (1, True, True)
    there = await penstock("run", "shop.count", "words=a", "--json")
    assert "will wait" not in there.err
    async with HttpClient(server, token=api.secrets["all"]) as client:
        assert (
            await client.cancel_chosen(ExecutionFilter(action="nobodys.lonely"), reason="it is lonely") == 2
        )


async def test_many_may_wait_for_results_at_once(server: str, api: Api) -> None:
    async with HttpClient(server, token=api.secrets["all"]) as client:
        id = await client.start("shop.count", {"words": "a"}, delay=3600)
        waiting = [asyncio.create_task(client.result(id, timeout=60)) for _ in range(120)]
        await asyncio.sleep(0.5)
        assert await client.run("shop.count", {"words": "a b"}, timeout=20) == 2
        assert await client.cancel(id) == 1
        ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(one) for one in ended} == {ExecutionFailed}


async def test_commands_need_no_database_where_a_server_is_named(server: str) -> None:
    ran = await penstock("run", "shop.count", "words=a b", "--wait", "--json")
    assert (ran.code, ran.document["result"]) == (0, 2), ran
    id = ran.document["id"]
    for words, said in (
        (("show", id), "shop.count"),
        (("show", id, "--json"), '"result":2'),
        (("history", id), "completed"),
        (("why", id), "completed"),
        (("watch", id), "completed"),
        (("executions", "--action", "shop.count"), id),
        (("logs", id), ""),
        (("inquiries",), ""),
        (("workers", "list"), "executor"),
        (("top",), "last minute"),
        (("top", "--json"), '"lately"'),
        (("publish", "shop.order_placed", "id=1"), "is stored"),
    ):
        done = await penstock(*words)
        assert (done.code, said in done.out) == (0, True), done
    run = (await penstock("run", "shop.approved", "--json")).document["id"]
    assert (await penstock("pause", run)).code == 0
    drawn = await penstock("show", run, "--mermaid")
    assert "flowchart" in drawn.out or "graph" in drawn.out
    tree = await penstock("show", run)
    assert (tree.code, "first" in tree.out) == (0, True), tree
    assert (await penstock("cancel", run)).code == 0
    assert (await penstock("cancel", "--action", "shop.never", "--json")).document["told"] == 0
    assert (await penstock("rerun", id, "--json")).document["rerun_of"] == id
    gone = await penstock("show", new_id())
    assert (gone.code, "no execution and no event" in gone.err) == (1, True)


async def test_rules_limits_schedules_and_workers_are_looked_after_over_http(server: str, api: Api) -> None:
    [worker] = await api.house.rows("select name from process where kind = 'worker'")
    name = worker["name"]
    for words, said in (
        (("rules", "list"), "shop.big_orders"),
        (("rules", "disable", "shop.big_orders"), "is disabled"),
        (("rules", "enable", "shop.big_orders"), "is enabled"),
        (("rules", "replay", "shop.big_orders", "--since", "1s", "--dry-run"), "events"),
        (("actions",), "shop.count"),
        (("types",), 'ActionRef("shop.count"'),
        (("triggers",), "shop.order_placed"),
        (("limit", "list"), "shop.door"),
        (("limit", "set", "shop.door", "3"), "allows 3 at once"),
        (("limit", "rm", "shop.door"), "is in force again"),
        (("schedule", "list"), "shop.nightly"),
        (("schedule", "pause", "shop.nightly", "--for", "1h"), "is paused for 1h"),
        (("schedule", "disable", "shop.nightly"), "is disabled"),
        (("schedule", "enable", "shop.nightly"), "It fires next at"),
        (("workers", "show", name), "task executor"),
        (("workers", "cordon", name), name),
        (("workers", "uncordon", name), "Back in service"),
    ):
        done = await penstock(*words)
        assert (done.code, said in done.out) == (0, True), (words, done)
    for words in (("rules", "enable", "shop.no"), ("workers", "cordon", "no"), ("limit", "rm", "no.such")):
        refused = await penstock(*words)
        assert (refused.code, "error" in refused.err) == (1, True), refused


async def test_bash_completes_the_names_that_a_server_has(server: str, api: Api) -> None:
    id = await api.house.client.start("shop.charge", {"order": 1}, delay=3600)
    [worker] = await api.house.rows("select name from process where kind = 'worker'")
    for typed, name in (
        ("run shop.cou", "shop.count"),
        ("rules disable shop.big", "shop.big_orders"),
        ("schedule pause shop.", "shop.nightly"),
        ("limit set shop.do", "shop.door"),
        ("workers cordon ", worker["name"]),
        ("worker --routes def", "default"),
        (f"cancel {str(id)[:-4]}", str(id)),
    ):
        await offers(typed, name)
    elsewhere = {"PENSTOCK_SERVER": ""}
    await offers(f"--server {server} workflow show shop.app", "shop.approved", more=elsewhere)
    assert await completions("run shop.cou", {"PENSTOCK_TOKEN": "wrong"}) == []
    assert await api.house.client.cancel(id) == 1


async def test_a_command_that_cannot_work_over_http_says_so(server: str) -> None:
    for words in (
        ("tokens", "list"),
        ("repair",),
        ("apply", "x.py"),
        ("schedule", "preview", "shop.nightly"),
        ("webhooks", "list"),
    ):
        said = await penstock(*words)
        assert said.code in (1, 2), said
        assert "not over HTTP" in said.err or words[0] == "apply", said
    typed = await penstock("--server", server, "executor")
    assert (typed.code, "not over HTTP" in typed.err) == (1, True)


async def test_a_server_is_named_in_three_ways(
    server: str, api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.delenv("PENSTOCK_SERVER")
    monkeypatch.delenv("PENSTOCK_TOKEN")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    absent = await penstock("--profile", "shop", "executions")
    assert (absent.code, "no profile 'shop'" in absent.err) == (1, True)
    file = tmp_path / "penstock/profiles.toml"  # type: ignore[operator]
    file.parent.mkdir()
    file.write_text(f'[shop]\nserver = "{server}"\ntoken = "{api.secrets["all"]}"\n')
    assert (await penstock("--profile", "shop", "executions")).code == 0
    refused = await penstock("--server", server, "executions")
    assert (refused.code, "no token" in refused.err) == (1, True)
    for wrong, said in (
        ("http://penstock.example.org", "does not use TLS"),
        ("ftp://x", "not an address of a server"),
    ):
        odd = await penstock("--server", wrong, "executions")
        assert (odd.code, said in odd.err) == (1, True), odd


async def test_a_request_carries_the_trace_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        return httpx.Response(200, json={"id": str(new_id())})

    with traced(monkeypatch):
        async with HttpClient("http://penstock", transport=httpx.MockTransport(answer)) as client:
            with trace.get_tracer("of the user").start_as_current_span("checkout") as span:
                await client.publish("shop.order_placed", {"id": 1}, key="once")
            await client.publish("shop.order_placed", {"id": 1})
    own = span.get_span_context()
    carried = trace_of(asked[0].headers)
    assert carried is not None
    assert (carried.trace_id, carried.span_id, carried.sampled) == (own.trace_id, own.span_id, True)
    assert asked[0].headers["idempotency-key"] == "once"
    assert "traceparent" not in asked[1].headers
