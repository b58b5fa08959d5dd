"""Executions that wait for something outside: completed, failed, late, doubled, forged, and after a cancel."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx
import pytest

from penstock.errors import ExecutionFailed, InvalidInput
from penstock.language.workflows import from_yaml
from penstock.operate import encryption, secrets, webhooks
from penstock.operate.access import create_token
from penstock.operate.event_rules import listed, outcome_of
from penstock.operate.executions import described
from penstock.operate.outside import Report, report_by_id
from penstock.store.events.event_list import EventFilter, ListedEvent
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows import inside, outside
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.penstock.operate.keys import KEY

pytestmark = pytest.mark.either_transport

ADDRESS = "http://penstock.test"
SECRET = "a secret of sixteen"


@asynccontextmanager
async def api(house: Installation) -> AsyncIterator[httpx.AsyncClient]:
    backend = Backend.of(house.client)
    app = make_app(backend)
    try:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ADDRESS) as caller:
            yield caller
    finally:
        await backend.close()


async def begin(house: Installation, *definitions: Any) -> None:
    await house.apply(*outside.ALL, *definitions)
    await house.executor()
    await house.worker(*outside.ALL, *definitions, api_address=ADDRESS)


async def path_of(house: Installation, count: int = 1) -> str:
    """Return the path of the newest callback, once so many were passed on."""
    await house.until("select 1 from event having count(*) >= $1", count)
    [row] = await house.rows("select payload::text as payload from event order by id desc limit 1")
    return str(urlsplit(json.loads(row["payload"])["address"]).path)


async def events_of(house: Installation) -> list[ListedEvent]:
    return await listed(house.session, EventFilter(), before=None, limit=100)


async def is_waiting(house: Installation, count: int = 1) -> None:
    await house.until("select 1 from execution where status = 'waiting' having count(*) = $1", count)


async def test_callback_completes_once(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        for ref in ("outside.waits", "outside.waits_in_process"):
            id = await house.client.start(ref)
            await is_waiting(house)
            path = await path_of(house)
            assert not await house.rows("select 1 from slot")
            noted = await caller.post(path, json={"progress": 0.25, "text": "built"})
            assert noted.json() == {"effect": "noted"}
            shown = await described(house.session, id)
            assert shown is not None
            assert (shown["progress"]["done"], shown["progress"]["text"]) == (0.25, "built")
            why = await house.client.why(id)
            assert "Waits for an outside system to complete it" in why.says
            assert "The last reported progress was 25%: built." in why.says
            assert (await caller.post(path, json={"result": {"n": 7}})).json() == {"effect": "settled"}
            assert await house.client.result(id, timeout=20) == {"n": 7}
            assert (await caller.post(path, json={"result": {"n": 7}})).json() == {"effect": "same"}
            for other in ({"result": 8}, {"error": "no"}, {"progress": 0.5}):
                assert (await caller.post(path, json=other)).status_code == 409
            assert await house.client.result(id, timeout=20) == {"n": 7}
            assert [attempt.outcome for attempt in await house.client.attempts(id)] == ["completed"]
    await house.sound()


async def test_report_before_the_wait_lets_the_work_go_on(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        id = await house.client.start("outside.is_slow", {"seconds": 3})
        path = await path_of(house)
        [row] = await house.rows("select status from execution")
        assert row["status"] == "running"
        for body in ({"progress": 0.3, "text": "built"}, {"heartbeat": True}):
            assert (await caller.post(path, json=body)).json() == {"effect": "noted"}
        for value in (False, None, 1, "yes"):
            refused = await caller.post(path, json={"heartbeat": value})
            assert (refused.status_code, "`heartbeat` is not true" in refused.text) == (422, True)
        await is_waiting(house)
        assert (await caller.post(path, json={"heartbeat": True})).json() == {"effect": "noted"}
        assert (await caller.post(path, json={"result": 1})).json() == {"effect": "settled"}
        assert await house.client.result(id, timeout=20) == 1
        over = await caller.post(path, json={"heartbeat": True})
        assert (over.status_code, over.json()["hint"].startswith("Stop the work")) == (409, True)
    await house.sound()


async def test_operator_ends_a_wait(house: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """The address of the callback may be lost, so an operator can end the wait by hand."""
    database_url = house.settings().database_url
    assert database_url is not None
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database_url.get_secret_value())
    await begin(house)
    id = await house.client.start("outside.waits")
    await is_waiting(house)
    assert f"penstock complete {id} --result" in (await house.client.why(id)).says
    neither = await penstock("complete", id)
    assert (neither.code, "an outcome has either a result or an error" in neither.err) == (1, True), neither
    completed = await penstock("complete", id, "--result", '{"n": 7}', "--by", "ada")
    assert completed.code == 0, completed
    assert await house.client.result(id, timeout=20) == {"n": 7}
    again = await penstock("complete", id, "--result", "8")
    assert (again.code, await house.client.result(id, timeout=20)) == (1, {"n": 7})
    failing = await house.client.start("outside.waits")
    await is_waiting(house)
    assert (await penstock("complete", failing, "--error", "the bank lost it")).code == 0
    with pytest.raises(ExecutionFailed, match="the bank lost it"):
        await house.client.result(failing, timeout=20)
    await house.sound()


async def test_wait_is_ended_over_http(house: Installation) -> None:
    await begin(house)
    id = await house.client.start("outside.waits")
    await is_waiting(house)
    _, token = await create_token(house.session, "ada", ["operate"], by="test")
    _, reader = await create_token(house.session, "reader", ["read", "start", "answer"], by="test")
    async with api(house) as caller:
        path = f"/api/v1/executions/{id}/complete"
        forbidden = await caller.post(path, json={"result": 1}, headers={"authorization": f"Bearer {reader}"})
        assert forbidden.status_code == 403, forbidden.text
        caller.headers["authorization"] = f"Bearer {token}"
        for outcome in ({"result": 1, "error": "late"}, {}):
            refused = await caller.post(path, json=outcome)
            assert (refused.status_code, "a result or an error" in refused.text) == (422, True), refused.text
        assert (await caller.post(path, json={"result": {"n": 7}})).status_code == 204
        assert await house.client.result(id, timeout=20) == {"n": 7}
        assert (await caller.post(path, json={"result": 8})).status_code == 409
        failing = await house.client.start("outside.waits")
        await is_waiting(house)
        path = f"/api/v1/executions/{failing}/complete"
        assert (await caller.post(path, json={"error": "the bank lost it"})).status_code == 204
    with pytest.raises(ExecutionFailed, match="the bank lost it"):
        await house.client.result(failing, timeout=20)
    rows = await house.rows(
        "select by, target, outcome from audit where operation like '%complete%' order by id"
    )
    assert [row["outcome"] for row in rows].count("done") == 2, rows
    await house.sound()


async def test_encrypted_tenant_waits_outside(make_house: Any) -> None:
    async with make_house(secrets_key=KEY) as house:
        await encryption.encrypt(house.session, "acme", by="ada")
        await begin(house)
        async with api(house) as caller:
            answered = await house.client.start("outside.waits", {"id": "gh:run:1"}, tenant="acme")
            await is_waiting(house)
            assert (await caller.post(await path_of(house), json={"result": {"n": 7}})).status_code == 200
            assert await house.client.result(answered, timeout=20) == {"n": 7}
            for n, limit in enumerate(({"timeout": 0.3}, {"heartbeat": 0.3, "timeout": 60})):
                await house.client.start("outside.waits", limit, tenant="acme")
                await house.until(
                    "select 1 from execution where status = 'timeout' having count(*) = $1", n + 1
                )
        await house.sound()


async def test_forged_and_malformed_reports_change_nothing(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        await house.client.start("outside.waits")
        await is_waiting(house)
        path = await path_of(house)
        forged = path[:-3] + ("AAA" if path[-3:] != "AAA" else "BBB")
        for address in (forged, "/callbacks/x", "/callbacks/" + "A" * 70, path + "AAAA"):
            assert (await caller.post(address, json={"result": 1})).status_code == 404
        bodies: list[Any] = [
            {},
            {"result": 1, "error": "x"},
            {"done": 1},
            [],
            {"progress": 2},
            {"error": 7},
            {"error": {"a": 1}},
        ]
        for body in bodies:
            assert (await caller.post(path, json=body)).status_code == 422, body
        assert (await caller.post(path, content=b"not json")).status_code == 422
        large = await caller.post(path, content=b'{"result": 123456789012345678901234567890}')
        assert (large.status_code, "64-bit" in large.text) == (422, True)
    assert await house.statuses() == {"waiting": 1}


async def test_failure_from_outside_obeys_the_retry_policy(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        id = await house.client.start("outside.waits_twice")
        await is_waiting(house)
        first = await path_of(house)
        assert (await caller.post(first, json={"error": "the build broke"})).json() == {"effect": "settled"}
        second = await path_of(house, 2)
        await is_waiting(house)
        assert second != first
        assert (await caller.post(first, json={"error": "the build broke"})).status_code in (200, 409)
        assert (await caller.post(first, json={"result": 1})).status_code == 409
        error = {"type": "Build", "message": "it broke again"}
        assert (await caller.post(second, json={"error": error})).json() == {"effect": "settled"}
        with pytest.raises(ExecutionFailed, match="Build: it broke again"):
            await house.client.result(id, timeout=20)
    attempts = await house.client.attempts(id)
    assert [(a.outcome, json.loads(a.error or "{}")["type"]) for a in attempts] == [
        ("failed", "OutsideError"),
        ("failed", "Build"),
    ]
    await house.sound()


async def test_late_outcomes_are_refused(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        cancelled = await house.client.start("outside.waits")
        await is_waiting(house)
        path = await path_of(house)
        await house.client.cancel(cancelled)
        await house.until("select 1 from execution where status = 'cancelled'")
        assert [attempt.outcome for attempt in await house.client.attempts(cancelled)] == ["cancelled"]
        assert (await caller.post(path, json={"result": 1})).status_code == 409
        await house.client.start("outside.waits", {"timeout": 0.3})
        await house.until("select 1 from execution where status = 'timeout'")
        assert (await caller.post(await path_of(house, 2), json={"result": 1})).status_code == 409
        await house.client.start("outside.waits", {"heartbeat": 0.5, "timeout": 60})
        await house.until("select 1 from execution where status = 'timeout' having count(*) = 2")
    assert await house.statuses() == {"cancelled": 1, "timeout": 2}
    await house.sound()


async def test_outcome_from_outside_shows_no_secret(make_house: Any) -> None:
    password = "pass of the shop"
    async with make_house(secrets_key=KEY) as house:
        await secrets.put(house.session, "public", "shop", password, by="ada")
        await begin(house)
        async with api(house) as caller:
            for n, outcome in enumerate(
                (
                    {"result": {"env": [password], password: 1}},
                    {"error": f"no {password}"},
                    {"result": password},
                )
            ):
                id = await house.client.start("outside.waits_with", {}, secrets={"password": "shop"})
                await is_waiting(house)
                path = await path_of(house, n + 1)
                assert (await caller.post(path, json={"progress": 0.5, "text": password})).status_code == 200
                if n == 2:
                    async with house.session.transaction() as tx:
                        report = Report.of(outcome)
                        await report_by_id(tx, 4096, "public", "with a secret", report, "test")
                    house.client.publish_staged(tx)
                else:
                    assert (await caller.post(path, json=outcome)).json() == {"effect": "settled"}
                    assert (await caller.post(path, json=outcome)).json() == {"effect": "same"}
                await house.until("select 1 from execution where id = $1 and finished_at is not null", id)
                shown = await house.client.get(id)
                assert "***" in f"{shown.result} {shown.error}"
        for table in ("result", "attempt", "outside_wait", "execution", "history", "event"):
            assert not await house.rows(
                f"select 1 from {table} t where t::text like '%' || $1 || '%'", password
            )
        await house.sound()


async def test_outcome_after_the_archive_is_same_or_refused(make_house: Any) -> None:
    async with make_house(archive_after=0.5) as house:
        await begin(house)
        async with api(house) as caller:
            paths = []
            for n, outcome in enumerate(
                ({"result": {"n": 7}}, {"error": {"type": "Build", "message": "broke"}})
            ):
                await house.client.start("outside.waits")
                await is_waiting(house)
                paths.append(await path_of(house, n + 1))
                assert (await caller.post(paths[n], json=outcome)).json() == {"effect": "settled"}
                await house.until("select 1 from archive having count(*) = $1", n + 1)
            assert (await caller.post(paths[0], json={"result": {"n": 7}})).json() == {"effect": "same"}
            error = {"type": "Build", "message": "broke"}
            assert (await caller.post(paths[1], json={"error": error})).json() == {"effect": "same"}
            for path, other in zip(paths, ({"result": 8}, {"result": {"n": 7}}), strict=True):
                assert (await caller.post(path, json=other)).status_code == 409
                assert (await caller.post(path, json={"error": "no"})).status_code == 409
        await house.sound()


async def test_outcome_before_the_wait_is_kept(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        id = await house.client.start("outside.is_slow", {"seconds": 1.0})
        path = await path_of(house)
        assert (await caller.post(path, json={"result": "early"})).json() == {"effect": "kept"}
        assert (await caller.post(path, json={"result": "early"})).json() == {"effect": "same"}
        assert (await caller.post(path, json={"result": "other"})).status_code == 409
        assert await house.client.result(id, timeout=20) == "early"
    await house.sound()


async def test_concurrent_completions_have_one_winner(house: Installation) -> None:
    await begin(house)
    async with api(house) as caller:
        ids = [await house.client.start("outside.waits") for _ in range(20)]
        await is_waiting(house, 20)
        paths = [
            urlsplit(row["address"]).path
            for row in await house.rows("select payload ->> 'address' as address from event")
        ]
        cancelling = asyncio.create_task(house.client.cancel(*ids[:5]))
        answers = await asyncio.gather(
            *(caller.post(path, json={"result": n}) for path in paths for n in range(4))
        )
        await cancelling
        effects = [answer.json()["effect"] for answer in answers if answer.status_code == 200]
        await house.quiet()
        statuses = await house.statuses()
        assert effects.count("settled") == statuses["completed"]
        assert sum(statuses.values()) == 20
        assert set(statuses) <= {"completed", "cancelled"}
    await house.sound()


async def test_webhook_completes_by_id(make_house: Any) -> None:
    async with make_house(secrets_key=KEY) as house:
        await begin(house)
        await webhooks.put(
            house.session,
            "builds",
            trigger="outside.called",
            signature="github",
            secret=SECRET,
            completes="{{ 'gh:run:' ~ body.run.id if body.action == 'completed' else none }}",
            fails="body.run.conclusion != 'success'",
            payload={"run": "{{ body.run.id }}"},
            by="test",
        )
        async with api(house) as caller:

            async def send(id: int, conclusion: str = "success", action: str = "completed") -> int:
                raw = json.dumps({"action": action, "run": {"id": id, "conclusion": conclusion}}).encode()
                signature = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
                headers = {
                    "x-hub-signature-256": f"sha256={signature}",
                    "x-github-delivery": f"{id}-{action}",
                    "content-type": "application/json",
                }
                return (await caller.post("/hooks/builds", content=raw, headers=headers)).status_code

            id = await house.client.start("outside.waits", {"id": "gh:run:1"})
            await is_waiting(house)
            assert await send(1, action="queued") == 202
            assert await house.statuses() == {"waiting": 1}
            assert [await send(1), await send(1)] == [202, 202]
            assert await house.client.result(id, timeout=20) == {"run": 1}
            completing = "select e.id from event e join effect f on f.parent = e.id where f.id = $1"
            [event] = await house.rows(completing, id)
            _, secret = await create_token(house.session, "reads", ["read"], tenants=(), by="test")
            headers = {"authorization": f"Bearer {secret}"}
            page = (await caller.get(f"/events/{event['id']}", headers=headers)).text
            assert "No rule uses this trigger." in page
            assert f'The event ended the wait of <a href="/executions/{id}">outside.waits</a>.' in page
            [continued] = (await house.client.event(event["id"]))["continued"]
            assert (continued["id"], continued["action"], continued["run"]) == (id, "outside.waits", None)
            [listed] = [row for row in await events_of(house) if row.id == event["id"]]
            assert outcome_of(listed) == "ended the wait of 1 execution"
            failing = await house.client.start("outside.waits", {"id": "gh:run:2"})
            await is_waiting(house)
            assert await send(2, "failure") == 202
            with pytest.raises(ExecutionFailed) as failed:
                await house.client.result(failing, timeout=20)
            [event] = await house.rows("select id from event where payload ->> 'run' = '2'")
            reported = (
                f'OutsideError: the webhook builds reports a failure in event {event["id"]}: {{"run":2}}'
            )
            assert reported in str(failed.value)
            [listed] = [row for row in await events_of(house) if row.id == event["id"]]
            assert outcome_of(listed) == "ended the wait of 1 execution"
            failing = await house.client.start("outside.waits", {"id": "gh:run:5"})
            await is_waiting(house)
            assert await send(5, "x" * 5000) == 202
            with pytest.raises(ExecutionFailed):
                await house.client.result(failing, timeout=20)
            assert len(json.loads((await house.client.get(failing)).error)["message"]) < 1200
            assert await send(3) == 202  # before the execution waits
            early = await house.client.start("outside.waits", {"id": "gh:run:3"})
            assert await house.client.result(early, timeout=20) == {"run": 3}
            other_tenant = await house.client.start("outside.waits", {"id": "gh:run:4"}, tenant="acme")
            await is_waiting(house)
            assert await send(4) == 202
            assert (await house.client.get(other_tenant)).status == "waiting"
        await house.sound()


async def test_repeated_call_settles_no_other_wait(make_house: Any) -> None:
    async with make_house(secrets_key=KEY) as house:
        await begin(house)
        await webhooks.put(
            house.session,
            "builds",
            trigger="outside.called",
            signature="github",
            secret=SECRET,
            completes="{{ body.id }}",
            fails="not body.ok",
            by="test",
        )
        async with api(house) as caller:

            async def send(**body: Any) -> httpx.Response:
                raw = json.dumps(body).encode()
                signature = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest()
                headers = {"x-hub-signature-256": f"sha256={signature}", "content-type": "application/json"}
                return await caller.post("/hooks/builds", content=raw, headers=headers)

            async def waits(id: UUID, attempt: int) -> None:
                await house.until(
                    "select 1 from execution where id = $1 and status = 'waiting' and attempt = $2",
                    id,
                    attempt,
                )

            retried = await house.client.start("outside.waits_for_order", {"order": 1})
            await waits(retried, 1)
            failed = await send(id="order:1", ok=False)
            again = await send(id="order:1", ok=False)  # before the next attempt, or while it waits
            assert failed.json() == again.json()
            await waits(retried, 2)
            assert (await send(id="order:1", ok=False)).json() == failed.json()
            assert (await send(id="order:1", ok=True)).status_code == 202
            assert await house.client.result(retried, timeout=20) == {"id": "order:1", "ok": True}
            assert (await send(id="order:1", ok=True)).status_code == 202
            second = await house.client.start("outside.waits_for_order", {"order": 1})
            await waits(second, 1)
            assert not await house.rows("select 1 from early_outcome")
            assert (await house.client.get(second)).status == "waiting"
            broken = await send(id="order:1")  # `fails` is in error
            assert broken.status_code == 422
            assert await house.rows('select 1 from event where payload = \'{"id": "order:1"}\'') == []
            await house.client.cancel(second)
        await house.sound()


async def test_concurrent_copies_of_a_call_settle_once(make_house: Any) -> None:
    async with make_house(secrets_key=KEY) as house:
        await begin(house)
        await webhooks.put(
            house.session,
            "builds",
            trigger="outside.called",
            signature="secret",
            secret=SECRET,
            key_header="x-call",
            completes="{{ body.id }}",
            by="test",
        )
        async with api(house) as caller:
            headers = {"x-webhook-secret": SECRET, "x-call": "c-1"}
            calls = (caller.post("/hooks/builds", json={"id": "order:1"}, headers=headers) for _ in range(8))
            answers = await asyncio.gather(*calls)
            assert {answer.status_code for answer in answers} == {202}
            assert len({answer.json()["id"] for answer in answers}) == 1
            early = await house.client.start("outside.waits_for_order", {"order": 1})
            await house.until("select 1 from execution where status = 'completed'")
            # The call came before the wait, and its event names the execution that it continued later.
            [continued] = (await house.client.event(UUID(answers[0].json()["id"])))["continued"]
            assert (continued["id"], continued["status"]) == (early, "completed")
            await house.client.start("outside.waits_for_order", {"order": 1})
            await is_waiting(house)
            del headers["x-call"]
            keyless = await caller.post("/hooks/builds", json={"id": "order:1"}, headers=headers)
            assert (keyless.status_code, "lacks the key header" in keyless.text) == (422, True)
        with pytest.raises(InvalidInput, match="`completes` needs a key"):
            await webhooks.put(
                house.session,
                "builds",
                trigger="outside.called",
                signature="secret",
                secret=SECRET,
                completes="{{ body.id }}",
                by="test",
            )
        await house.sound()


async def test_task_of_a_workflow_waits_outside(house: Installation) -> None:
    flow = from_yaml("""
workflow: outside.flow
tasks:
  build: {action: outside.waits}
  after: {action: outside.waits, input: {id: "{{ tasks.build.result.id }}"}, needs: [build]}
output: "{{ tasks.after.result }}"
""")
    await begin(house, flow)
    async with api(house) as caller:
        id = await house.client.start("outside.flow")
        await is_waiting(house)
        await caller.post(await path_of(house), json={"result": {"id": "x"}})
        await house.until("select 1 from outside_wait where name = 'x'")
        await caller.post(await path_of(house, 2), json={"result": "done"})
        assert await house.client.result(id, timeout=20) == "done"
    await house.sound()


async def test_program_calls_the_api_while_it_runs(house: Installation) -> None:
    await begin(house, inside.shows_environment)
    id = await house.client.start("inside.shows_environment", tenant="acme")
    address, token = await house.client.result(id, timeout=20)
    assert address == ADDRESS
    assert token == "***"
    lines = await house.until("select line from log_line where execution_id = $1", id)
    assert [row["line"] for row in lines] == ["token ***"]


async def test_execution_token_ends_with_its_attempt(house: Installation, tmp_path: Path) -> None:
    await begin(house, *inside.ALL)
    async with api(house) as caller:
        path = tmp_path / "token"
        id = await house.client.start("inside.calls_back", {"path": str(path)}, tenant="acme")
        async with asyncio.timeout(20):
            while not path.exists() or not path.read_text():
                await asyncio.sleep(0.05)
        headers = {"authorization": f"Bearer {path.read_text()}"}

        async def ask(method: str, address: str, **options: Any) -> int:
            return (
                await caller.request(method, f"/api/v1/{address}", headers=headers, **options)
            ).status_code

        start = {"action": "inside.double", "parameters": {"n": 1}, "tenant": "acme"}
        assert await ask("POST", "executions", json=start) == 201
        assert await ask("POST", "executions", json={**start, "tenant": "public"}) == 403
        event = {"trigger": "inside.paid", "payload": {"n": 1}, "tenant": "acme"}
        assert await ask("POST", "events", json=event) == 201
        assert await ask("GET", f"executions/{id}") == 200
        assert await ask("POST", f"executions/{id}/cancel", json={}) == 403
        assert await ask("GET", "tokens") == 403
        [row] = await house.rows(
            "select p.origin ->> 'by' as by from payload p join execution e on e.id = p.execution_id "
            "join definition d on d.id = e.definition_id where d.ref = 'inside.double'"
        )
        assert row["by"] == f"execution:{id}"
        forged = headers["authorization"][:-2] + "xx"
        refused = await caller.get("/api/v1/executions", headers={"authorization": forged})
        assert refused.status_code == 401
        path.unlink()
        await house.client.result(id, timeout=20)
    async with api(house) as caller:  # another replica, which has cached nothing
        assert (await caller.get("/api/v1/executions", headers=headers)).status_code == 401
