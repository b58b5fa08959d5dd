"""The worker protocol: each message of a worker, sent by hand to a gateway over a real database."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from pydantic import SecretStr

from penstock.client.client import Client
from penstock.language.definitions.program_actions import program_action
from penstock.language.terms.sources import Source
from penstock.operate import secrets
from penstock.operate.access import find_work_caller
from penstock.operate.why import why
from penstock.service.assembly import assembled
from penstock.store.outbox.queues import WORK
from penstock.store.processes import remote_workers
from penstock_api import fast_path
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.work import sessions
from penstock_api.work.gateway import Gateway
from tests.flows.installation import AS_USED
from tests.penstock_api.conftest import Api
from tests.servers import databases

V1 = "/api/v1"
UNFINISHED = """
select e.id from execution e join definition d on d.id = e.definition_id where d.ref = any($1) and e.finished_at is null
"""

CALLED_BACK = """
select from execution e join definition d on d.id = e.definition_id where d.ref = $1 having count(*) = 3
"""


class Worker:
    """A worker whose messages a test sends."""

    def __init__(self, caller: httpx.AsyncClient, welcome: dict[str, Any]) -> None:
        self.caller = caller
        self.welcome = welcome
        self.headers = {"penstock-session": welcome["session"]}

    async def post(self, name: str, message: dict[str, Any]) -> httpx.Response:
        return await self.caller.post(f"{V1}/work/{name}", json=message, headers=self.headers)

    async def ok(self, name: str, message: dict[str, Any]) -> dict[str, Any]:
        answer = await self.post(name, message)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    async def take(self, slots: int = 1, wait: float = 20.0, **more: Any) -> list[dict[str, Any]]:
        message = {"request": str(uuid4()), "slots": slots, "wait": wait, **more}
        return list((await self.ok("take", message))["attempts"])

    async def one(self) -> dict[str, Any]:
        [attempt] = await self.take()
        return attempt

    async def finish(self, attempt: dict[str, Any], **end: Any) -> httpx.Response:
        return await self.post("finish", {"ends": [{**key(attempt), "outcome": "completed", **end}]})


def key(attempt: dict[str, Any]) -> dict[str, Any]:
    return {"execution": attempt["execution"], "attempt": attempt["attempt"]}


async def remote(api: Api, **options: Any) -> str:
    """Apply an action of its own route that workers elsewhere run. Return its ref."""
    ref = f"remote.a{uuid4().hex[:12]}"
    values = {
        "route": ref.replace(".", "-"),
        "parameters": {"type": "object", "additionalProperties": True},
        **options,
    }
    await api.house.apply(program_action(ref, "remote", values, Source("test", 1)))
    return ref


@asynccontextmanager
async def working(api: Api, ref: str, token: str = "worker", **more: Any) -> AsyncIterator[Worker]:
    """Begin a session of a worker for this action."""
    if token not in api.secrets:
        await api.token(token, "work")
    async with api.caller(token) as caller:
        hello = {
            "name": "tester",
            "language": "python",
            "sdk": "test/1",
            "slots": 4,
            "actions": [{"ref": ref}],
            "routes": [ref.replace(".", "-")],
            **more,
        }
        answer = await caller.post(f"{V1}/work/hello", json=hello)
        assert answer.status_code == 201, answer.text
        worker = Worker(caller, answer.json())
        yield worker
        await worker.post("bye", {})
    await cancel_unfinished(api, ref)


async def cancel_unfinished(api: Api, *refs: str) -> None:
    """Leave nothing unfinished: another test may wait for that."""
    for row in await api.house.rows(UNFINISHED, list(refs)):
        await api.house.client.cancel(row["id"])


async def status(api: Api, id: UUID) -> tuple[str, int]:
    [row] = await api.house.rows("select status, attempt from execution where id = $1", id)
    return row["status"], row["attempt"]


async def test_started_work_is_taken_and_its_result_stored(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref, {"n": 7})
        attempt = await worker.one()
        assert (attempt["execution"], attempt["attempt"], attempt["parameters"]) == (str(id), 1, {"n": 7})
        assert (attempt["action"], attempt["tenant"], attempt["state"]) == (ref, "public", None)
        assert (await worker.finish(attempt, result={"doubled": 14})).json() == {"lost": []}
        assert await api.house.client.result(id, timeout=20) == {"doubled": 14}
        assert not await api.house.rows("select from claim where worker = $1", UUID(worker.welcome["worker"]))
        [moved] = await api.house.rows(
            "select actor from history where execution_id = $1 and new = 'completed'", id
        )
        assert moved["actor"] == "gateway:tester"


async def test_waiting_take_is_answered_when_work_comes(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        taking = asyncio.create_task(worker.take(slots=3))
        await asyncio.sleep(0.2)
        ids = {str(await api.house.client.start(ref, {"n": n})) for n in range(3)}
        attempts = await taking
        while len(attempts) < 3:
            attempts += await worker.take(slots=3)
        assert {attempt["execution"] for attempt in attempts} == ids
        ends = [{**key(attempt), "outcome": "completed", "result": 1} for attempt in attempts]
        assert await worker.ok("finish", {"ends": ends}) == {"lost": []}


async def test_take_sent_again_gives_the_same_attempts(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        await api.house.client.start(ref)
        message = {"request": str(uuid4()), "slots": 2, "wait": 20}
        first = (await worker.ok("take", message))["attempts"]
        again = (await worker.ok("take", {**message, "again": True}))["attempts"]
        assert [key(attempt) for attempt in again] == [key(attempt) for attempt in first]
        assert (await worker.finish(first[0])).status_code == 200
        assert (await worker.ok("take", {**message, "again": True, "wait": 0}))["attempts"] == []


async def test_take_stores_ends_and_brings_more(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref, {"n": 1})
        attempt = await worker.one()
        other = await api.house.client.start(ref, {"n": 2})
        ends = [{**key(attempt), "outcome": "completed", "result": 1}]
        message = {"request": str(uuid4()), "slots": 2, "wait": 0.0, "ends": ends}
        first = await worker.ok("take", message)
        assert first["lost"] == []
        assert await api.house.client.result(id, timeout=20) == 1
        again = await worker.ok("take", {**message, "again": True})
        assert again["lost"] == []
        taken = again["attempts"] or await worker.take()
        names = [{"execution": str(other), "attempt": 1}]
        assert [key(entry) for entry in taken] == names
        assert [key(entry) for entry in first["attempts"]] in ([], names)
        assert (await worker.finish(taken[0])).json() == {"lost": []}
        moves = await api.house.rows("select from history where execution_id = $1 and new = 'completed'", id)
        assert len(moves) == 1


async def test_take_with_ends_does_not_wait(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        await api.house.client.start(ref)
        attempt = await worker.one()
        ends = [{**key(attempt), "outcome": "completed", "result": 1}]
        async with asyncio.timeout(30):
            assert await worker.take(wait=60.0, ends=ends) == []


async def test_take_names_lost_attempts_and_brings_work_all_the_same(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker, working(api, ref) as other:
        await api.house.client.start(ref)
        attempt = await other.one()
        ends = [{**key(attempt), "outcome": "completed", "result": 1}]
        message = {"request": str(uuid4()), "slots": 1, "wait": 20.0, "ends": ends}
        answer = await worker.ok("take", message)
        assert answer == {"attempts": [], "drain": False, "lost": [attempt["execution"]]}
        assert (await other.finish(attempt, result=2)).json() == {"lost": []}


@pytest.mark.parametrize("wrong", ["twice", "undecided"])
async def test_take_with_wrong_ends_takes_nothing(api: Api, wrong: str) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        await api.house.client.start(ref)
        attempt = await worker.one()
        id = await api.house.client.start(ref)
        end = {**key(attempt), "outcome": "completed" if wrong == "twice" else "deferred"}
        message = {
            "request": str(uuid4()),
            "slots": 1,
            "wait": 20.0,
            "ends": [end, end][: 2 if wrong == "twice" else 1],
        }
        assert (await worker.post("take", message)).status_code == 422
        taken = await worker.one()
        assert key(taken) == {"execution": str(id), "attempt": 1}
        assert await status(api, UUID(attempt["execution"])) == ("running", 1)
        for each in (attempt, taken):
            assert (await worker.finish(each)).json() == {"lost": []}


MESSAGES: dict[str, dict[str, Any]] = {
    "take": {"request": str(uuid4()), "slots": 1, "wait": 0.0},
    "beat": {"holding": [{"execution": str(uuid4()), "attempt": 1}]},
    "log": {"lines": [{"execution": str(uuid4()), "attempt": 1, "seq": 1, "line": "x"}]},
    "progress": {"reports": [{"execution": str(uuid4()), "attempt": 1, "seq": 1, "done": 0.5}]},
    "finish": {"ends": [{"execution": str(uuid4()), "attempt": 1, "outcome": "cancelled"}]},
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("kind", ["valid", "unknown session", "no session", "wrong", "wrong scope"])
async def test_fast_path_and_fastapi_answer_alike(
    api: Api, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    fast: list[bool] = []
    real = fast_path.answer

    async def noted(*arguments: Any) -> Any:
        unread = await real(*arguments)
        fast.append(unread is None)
        return unread

    monkeypatch.setattr(fast_path, "answer", noted)
    if "read only" not in api.secrets:
        await api.token("read only", "read")
    ref = await remote(api)
    async with working(api, ref) as worker, api.caller("read only") as reader:
        message = {
            **MESSAGES[name],
            "unknown": 1,
            **({"slots": 0, "ends": 1, "lines": 1, "reports": 1, "holding": 1} if kind == "wrong" else {}),
        }
        headers = {} if kind == "no session" else dict(worker.headers)
        if kind == "unknown session":
            headers["penstock-session"] = f"psw_{uuid4().hex}x"
        caller = reader if kind == "wrong scope" else worker.caller
        content = json.dumps(message)
        answers = [
            await caller.post(
                f"{V1}/work/{name}", content=content, headers={**headers, "content-type": media}
            )
            for media in ("application/json", "application/json; charset=utf-8")
        ]
        assert fast[-2:] == [kind in ("valid", "unknown session"), False]
        first, second = answers
        assert (first.status_code, first.json()) == (second.status_code, second.json())
        assert first.headers["content-type"] == second.headers["content-type"]
        assert first.headers["content-security-policy"] == second.headers["content-security-policy"]


async def test_end_sent_again_is_stored_once(api: Api) -> None:
    ref = await remote(api, retry={"max_attempts": 3, "initial_delay": 50})
    async with working(api, ref) as worker:
        done, failed = await api.house.client.start(ref), await api.house.client.start(ref)
        for id, end in ((done, {"result": 1}), (failed, {"outcome": "failed", "error": {"type": "X"}})):
            attempts = await worker.take()
            assert [attempt["execution"] for attempt in attempts] == [str(id)]
            for _ in range(2):
                answer = await worker.finish(attempts[0], **end)
                assert (answer.status_code, answer.json()) == (200, {"lost": []})
        assert await status(api, done) == ("completed", 1)
        assert await status(api, failed) == ("requested", 1)


@pytest.mark.parametrize("name", ["finish", "log", "progress"])
async def test_stale_write_is_refused_and_changes_nothing(api: Api, name: str) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker, working(api, ref) as other:
        id = await api.house.client.start(ref)
        attempt = await worker.one()
        items = {
            "finish": {"ends": [{**key(attempt), "outcome": "completed", "result": "stolen"}]},
            "log": {"lines": [{**key(attempt), "seq": 1, "line": "stolen"}]},
            "progress": {"reports": [{**key(attempt), "seq": 1, "done": 1, "text": "stolen"}]},
        }
        for sender, changes in ((other, {}), (worker, {"attempt": 2})):
            [(list_name, [item])] = items[name].items()
            answer = await sender.post(name, {list_name: [{**item, **changes}]})
            assert answer.status_code == 409, answer.text
            assert answer.json()["type"] == "urn:penstock:error:ClaimLost"
        assert await status(api, id) == ("running", 1)
        assert not await api.house.rows("select from log_line where execution_id = $1", id)
        assert (await worker.finish(attempt, result="own")).status_code == 200
        assert await api.house.client.result(id, timeout=20) == "own"


async def test_part_of_a_batch_may_be_lost(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        await api.house.client.start(ref)
        attempt, stranger = await worker.one(), str(uuid4())
        ends = [
            {**key(attempt), "outcome": "completed"},
            {"execution": stranger, "attempt": 1, "outcome": "completed"},
        ]
        assert await worker.ok("finish", {"ends": ends}) == {"lost": [stranger]}


async def test_heartbeat_names_lost_and_cancelled_attempts(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        attempt = await worker.one()
        strange = {"execution": str(uuid4()), "attempt": 1}
        answer = await worker.ok("beat", {"holding": [key(attempt), strange]})
        assert answer == {"lost": [strange["execution"]], "cancel": [], "drain": False}
        beating = asyncio.create_task(worker.ok("beat", {"holding": [key(attempt)], "wait": 30}))
        await asyncio.sleep(0.2)
        await api.house.client.cancel(id)
        assert (await beating)["cancel"] == [str(id)]
        known = {"holding": [{**key(attempt), "cancelling": True}], "wait": 0.2}
        assert (await worker.ok("beat", known))["cancel"] in ([], [str(id)])
        await worker.finish(attempt, outcome="cancelled")
        assert await status(api, id) == ("cancelled", 1)


async def test_silent_worker_loses_its_attempts(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker, working(api, ref) as heir:
        id = await api.house.client.start(ref)
        attempt = await worker.one()
        mine = UUID(worker.welcome["worker"])
        await api.house.rows(
            "update process set patience = interval '1 second' where id = $1 returning 1", mine
        )
        [inherited] = await heir.take(wait=60)
        assert (inherited["execution"], inherited["attempt"]) == (str(id), 2)
        assert (await worker.finish(attempt, result="late")).status_code == 409
        refused = await worker.post("beat", {"holding": [key(attempt)]})
        assert (refused.status_code, refused.json()["type"]) == (404, "urn:penstock:error:UnknownSession")
        assert (await heir.finish(inherited, result="in time")).status_code == 200
        assert await api.house.client.result(id, timeout=20) == "in time"


async def test_log_and_progress_are_stored_once(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        attempt = await worker.one()
        lines = [{**key(attempt), "seq": n, "line": f"line {n}"} for n in (1, 2, 3)]
        for _ in range(2):
            assert await worker.ok("log", {"lines": lines}) == {"lost": []}
        await worker.ok("progress", {"reports": [{**key(attempt), "seq": 4, "done": 0.5, "text": "half"}]})
        await worker.finish(attempt)
        rows = await api.house.rows(
            "select stream, line from log_line where execution_id = $1 order by seq", id
        )
        assert [tuple(row) for row in rows] == [
            *(("log", f"line {n}") for n in (1, 2, 3)),
            ("progress", "0.5 half"),
        ]


async def test_pieces_of_a_secret_beside_a_cut_are_masked(api: Api) -> None:
    secret = {"properties": {"key": {"type": "string", "secret": True}}, "additionalProperties": True}
    ref = await remote(api, parameters={"type": "object", **secret})
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref, {"key": "correct-horse-battery"})
        attempt = await worker.one()
        texts = ["its key is correct-ho…", "…rse-battery, in two lines"]
        lines = [{**key(attempt), "seq": n, "stream": "log", "line": text} for n, text in enumerate(texts, 1)]
        await worker.ok("log", {"lines": lines})
        rows = await api.house.rows("select line from log_line where execution_id = $1 order by seq", id)
        assert [row["line"] for row in rows] == ["its key is ***…", "…***, in two lines"]


async def test_carry_of_deferral_returns_whole_from_another_attempt(api: Api) -> None:
    ref = await remote(api)
    carry = {"state": {"page": 2}, "sleeps": 3, "answers": ["yes"]}
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        first = await worker.one()
        assert (first["carry"], first["state"]) == ({}, None)
        end = {"outcome": "deferred", "delay": 0, "state": "unused", "carry": carry}
        assert (await worker.finish(first, **end)).json() == {"lost": []}
        second = await worker.one()
        assert (second["execution"], second["carry"]) == (str(id), carry)
        assert (second["state"], second["answers"]) == ({"page": 2}, ["yes"])
        await worker.finish(second)


@pytest.mark.parametrize(
    "carry",
    [{"answers": 5}, {"answers": None}, {"answers": "yes"}, {"sleeps": "1"}, {"sleeps": -1}, {"until": 5}],
    ids=str,
)
async def test_carry_of_a_wrong_form_is_refused(api: Api, carry: dict[str, Any]) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        await api.house.client.start(ref)
        attempt = await worker.one()
        end = {**key(attempt), "outcome": "deferred", "delay": 0, "carry": carry}
        for name, message in (
            ("finish", {"ends": [end]}),
            ("take", {"request": str(uuid4()), "slots": 1, "wait": 0.0, "ends": [end]}),
        ):
            answer = await worker.post(name, message)
            assert answer.status_code == 422
            assert "ends[0].carry" in answer.json()["detail"]
        assert (await worker.finish(attempt)).json() == {"lost": []}


async def test_attempt_that_cannot_be_sent_fails_and_takes_no_other_with_it(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        await worker.finish(await worker.one(), outcome="deferred", delay=3, carry={"answers": [1]})
        await api.house.rows(
            "update attempt set error = jsonb_set(error, '{carry, answers}', '5') where execution_id = $1", id
        )
        other = await api.house.client.start(ref)
        await api.house.until(
            "select 1 from execution where id = any($1) and status = 'scheduled' having count(*) = 2",
            [id, other],
        )
        [attempt] = await worker.take(slots=2)
        assert attempt["execution"] == str(other)
        assert (await worker.finish(attempt)).json() == {"lost": []}
        [row] = await api.house.until("select reason from execution where id = $1 and status = 'failed'", id)
        assert "carries over cannot be sent" in row["reason"]


async def test_type_of_an_error_with_a_nul_keeps_no_other_end(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        error = {"type": "T\0", "message": "m", "retryable": False}
        assert (await worker.finish(await worker.one(), outcome="failed", error=error)).json() == {"lost": []}
        [row] = await api.house.rows("select reason from execution where id = $1", id)
        assert row["reason"] == "T\ufffd: m"


async def test_group_of_errors_is_retried_only_if_each_would_be(api: Api) -> None:
    ref = await remote(api, retry={"max_attempts": 2, "initial_delay": 50, "retry_on": ["ConnectionError"]})
    async with working(api, ref) as worker:
        for members, expected in (
            ([["ConnectionError"], ["ConnectionError"]], "requested"),
            ([["ConnectionError"], ["ValueError"]], "failed"),
        ):
            id = await api.house.client.start(ref)
            error = {"type": "ExceptionGroup", "kinds": ["ExceptionGroup"], "members": members}
            await worker.finish(await worker.one(), outcome="failed", error=error)
            assert (await api.house.client.get(id)).status == expected
            await api.house.client.cancel(id)


async def test_each_outcome_has_its_ending(api: Api) -> None:
    ref = await remote(api, retry={"max_attempts": 2, "initial_delay": 50}, timeout=600)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"outcome": "failed", "error": {"type": "E", "retryable": False}}, "failed"),
        ({"outcome": "failed", "error": {"type": "E"}}, "requested"),
        ({"outcome": "deferred", "delay": 600, "state": {"page": 2}}, "requested"),
        ({"outcome": "deferred", "until": "2100-01-01T00:00:00Z"}, "requested"),
        ({"outcome": "cancelled"}, "requested"),
        ({"outcome": "completed", "result": "x" * 300_000}, "failed"),
        ({"outcome": "completed", "result": "a\x00b"}, "failed"),
    ]
    async with working(api, ref) as worker:
        for end, expected in cases:
            id = await api.house.client.start(ref)
            attempt = await worker.one()
            assert attempt["timeout"] == 600
            answer = await worker.finish(attempt, **end)
            assert answer.status_code == 200, answer.text
            assert (await status(api, id))[0] in (expected, "requested" if expected == "failed" else expected)
            await api.house.client.cancel(id)


async def test_handed_back_attempt_is_no_failure(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        for started in (True, False):
            await worker.finish(await worker.one(), outcome="handed_back", started=started)
        await worker.finish(await worker.one(), result=3)
        assert await api.house.client.result(id, timeout=20) == 3
        [row] = await api.house.rows("select failures, recoveries from execution where id = $1", id)
        assert tuple(row) == (0, 0)


async def test_cancelled_end_without_a_request_is_a_failure(api: Api) -> None:
    ref = await remote(api, retry={"max_attempts": 2, "initial_delay": 0.01})
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        for _ in range(2):
            await worker.finish(await worker.one(), outcome="cancelled")
        assert await status(api, id) == ("failed", 2)
        [row] = await api.house.rows(
            "select error ->> 'message' as text from result where execution_id = $1", id
        )
        assert row["text"] == "its worker ended it as cancelled, and no end was requested"


async def test_attempt_that_is_handed_back_for_a_day_fails(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        id = await api.house.client.start(ref)
        for attempt in range(99):
            await worker.finish(await worker.one(), outcome="handed_back", started=attempt % 2 == 0)
        answer = await why(api.house.session, id, api.house.settings())
        assert "Workers handed the execution back 99 times in a row within" in answer.says
        assert (answer.facts["handed_back"], answer.facts["handed_back_by"]) == (99, ["tester"])
        await worker.finish(await worker.one(), outcome="handed_back")
        assert (await status(api, id))[0] != "failed"  # a day has not passed
        await api.house.rows("update attempt set at = at - interval '1 day' where execution_id = $1", id)
        await worker.finish(await worker.one(), outcome="handed_back", started=False)
        assert await status(api, id) == ("failed", 101)
        [row] = await api.house.rows("select error from result where execution_id = $1", id)
        assert '"type": "HandedBack"' in row["error"]
        assert "101 times in a row within 24 h, the workers tester" in row["error"]


async def test_closed_connection_returns_its_attempts(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref) as worker:
        taking = asyncio.create_task(worker.take())
        await asyncio.sleep(0.2)
        taking.cancel()
        id = await api.house.client.start(ref)
        attempt = await worker.one()
        assert attempt["execution"] == str(id)
        await worker.finish(attempt)


async def test_another_gateway_continues_a_session(api: Api) -> None:
    ref = await remote(api, parameters={"type": "object", "properties": {"pin": {"secret": True}}})
    backend = Backend.of(api.house.client)
    elsewhere = httpx.ASGITransport(make_app(backend), raise_app_exceptions=False)
    async with working(api, ref) as worker:
        headers = {"authorization": f"Bearer {api.secrets['worker']}", **worker.headers}
        async with httpx.AsyncClient(
            transport=elsewhere, base_url="http://penstock", headers=headers
        ) as other:
            id = await api.house.client.start(ref, {"pin": "SECRETPIN"})
            attempt = await worker.one()
            line = {**key(attempt), "seq": 1, "line": "the pin is SECRETPIN"}
            assert (await other.post(f"{V1}/work/log", json={"lines": [line]})).status_code == 200
            assert (await other.post(f"{V1}/work/beat", json={"holding": [key(attempt)]})).status_code == 200
            end = {**key(attempt), "outcome": "completed", "result": 5}
            assert (await other.post(f"{V1}/work/finish", json={"ends": [end]})).status_code == 200
        assert await api.house.client.result(id, timeout=20) == 5
        [row] = await api.house.rows("select line from log_line where execution_id = $1", id)
        assert "SECRETPIN" not in row["line"]
    await backend.close()


@asynccontextmanager
async def patient_gateway(api: Api) -> AsyncIterator[tuple[httpx.AsyncClient, Gateway]]:
    """Make a gateway that does not look for parked work now and then, and a client of it."""
    backend = Backend.of(api.house.client)
    look = backend.gateway.takes.look_for_parked
    backend.gateway.takes.look_for_parked = lambda every: look(1000.0)  # type: ignore[method-assign]
    headers = {"authorization": f"Bearer {api.secrets['worker']}"}
    transport = httpx.ASGITransport(make_app(backend))
    async with httpx.AsyncClient(transport=transport, base_url="http://penstock", headers=headers) as caller:
        yield caller, backend.gateway
    await backend.close()


@pytest.mark.parametrize("is_new", [False, True])
async def test_work_parked_elsewhere_is_given_to_the_next_take(api: Api, *, is_new: bool) -> None:
    """A gateway hears of parked work while no take waits. It asks for the next one, of a worker that it knows or not."""
    other = await remote(api)
    route = other.replace(".", "-")
    ref = await remote(api, route=route)
    async with (
        working(api, other) as lacks,
        working(api, other) as earlier,
        working(api, ref, routes=[route]) as able,
        patient_gateway(api) as (caller, gateway),
    ):
        callers = earlier.caller, able.caller
        earlier.caller = able.caller = caller
        assert await (earlier if is_new else able).take(wait=0.1) == []
        taking = asyncio.create_task(lacks.take(wait=60))
        id = await api.house.client.start(ref)
        await api.house.until("select from parked where execution_id = $1", id)
        gateway.takes.parked_on(
            WORK + route
        )  # as by the broadcast, which comes to one gateway of this process alone
        await asyncio.sleep(0.5)
        [attempt] = await able.take(wait=30)
        assert attempt["execution"] == str(id)
        await able.finish(attempt)
        taking.cancel()
        earlier.caller, able.caller = callers


async def test_unknown_fields_are_ignored(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref, colour="blue") as worker:
        await api.house.client.start(ref)
        [attempt] = await worker.take(mood="good")
        assert (await worker.finish(attempt, result=1, colour="blue")).status_code == 200


async def test_sessions_of_waiting_workers_are_read_together(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CACHED_S", 1.0)
    ref = await remote(api)
    gateway = api.app.state.backend.gateway
    async with working(api, ref) as worker:
        id = UUID(worker.welcome["worker"])
        await worker.take(wait=0.0)
        await api.house.rows(
            "update process set beat_at = clock_timestamp() - interval '20 seconds' where id = $1", id
        )
        async with gateway.pool.session() as session:
            states = await remote_workers.beat_waiting(session, [id, unknown := uuid4()], 30.0, 10.0)
        assert states == {unknown: None}
        [beat] = await api.house.rows(
            "select clock_timestamp() - beat_at < interval '9 seconds' as fresh from process where id = $1",
            id,
        )
        assert beat["fresh"]
        await asyncio.sleep(1.1)
        [remote_worker] = [cached for cached, _ in gateway.sessions._cached.values() if cached.id == id]
        gateway.sessions.refresh([remote_worker], {id}, asyncio.get_running_loop().time())
        await api.house.rows("delete from process where id = $1", id)
        answer = await worker.ok("take", {"request": str(uuid4()), "slots": 1, "wait": 0.0})
        assert answer == {"attempts": [], "drain": True, "lost": []}  # from the cache
        async with gateway.pool.session() as session:
            assert await remote_workers.beat_waiting(session, [id], 30.0, 10.0) == {id: None}
        await asyncio.sleep(1.1)
        refused = await worker.post("take", {"request": str(uuid4()), "slots": 1, "wait": 0.0})
        assert refused.json()["type"].endswith("UnknownSession")


async def test_cordoned_worker_takes_nothing(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref, name=f"cordoned-{uuid4().hex}") as worker, api.caller() as operator:
        [row] = await api.house.rows("select name from process where id = $1", UUID(worker.welcome["worker"]))
        await operator.post(f"{V1}/workers/{row['name']}/cordon", json={})
        await api.house.client.start(ref)
        assert (await worker.ok("beat", {}))["drain"] is True
        assert await worker.take(wait=1) == []
        await operator.post(f"{V1}/workers/{row['name']}/uncordon", json={})
        await worker.finish(await worker.one())


async def test_hello_tells_differences_of_schemas(api: Api) -> None:
    defined = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    ref = await remote(api, parameters=defined, result={"type": "string"})
    equal = {"ref": ref, "parameters": {**defined, "title": "Parameters"}, "result": {"type": "string"}}
    async with working(api, ref, actions=[equal]) as worker:
        assert worker.welcome["differences"] == []
    other = {"ref": ref, "parameters": {"n": {"type": "number"}}, "result": {"type": "string"}}
    async with working(api, ref, actions=[other]) as worker:
        assert worker.welcome["differences"] == [
            {
                "action": ref,
                "part": "parameters",
                "text": 'n.type: the definition has "integer", the worker "number"',
            },
            {"action": ref, "part": "parameters", "text": "n: only the definition requires it"},
        ]
        id = await api.house.client.start(ref, {"n": 3})  # its work is given all the same
        await worker.finish(await worker.one(), result="three")
        assert await api.house.client.result(id, timeout=20) == "three"


async def test_answer_on_its_way_for_seconds_loses_no_attempt(api: Api) -> None:
    """A worker that has not read the answer to its take names no attempt in its heartbeats."""
    ref = await remote(api)
    earlier = (
        "update claim set claimed_at = claimed_at - make_interval(secs => $2) where worker = $1 returning 1"
    )
    async with working(api, ref) as worker:
        mine = UUID(worker.welcome["worker"])
        id = await api.house.client.start(ref)
        attempt = await worker.one()
        assert await api.house.rows(earlier, mine, 8.0)
        for _ in range(3):
            await worker.ok("beat", {"holding": []})
        assert await status(api, id) == ("running", 1)
        assert await api.house.rows(earlier, mine, 3.0)
        for _ in range(2):
            await worker.ok("beat", {"holding": []})
        assert (await worker.finish(attempt)).status_code == 409


async def test_page_of_workers_names_an_older_library(api: Api) -> None:
    ref = await remote(api)
    for sdk, is_named in (("penstock-sdk/0.0.9 (node 20)", True), ("mine/0.0.9", False)):
        async with working(api, ref, sdk=sdk), api.caller("all") as caller:
            page = (await caller.get("/workers")).text
            assert (sdk in page, "older library" in page) == (True, is_named)


async def test_hello_tells_that_a_definition_has_no_schema(api: Api) -> None:
    ref = await remote(api)
    async with working(api, ref, actions=[{"ref": ref, "result": {"type": "string"}}]) as worker:
        assert worker.welcome["differences"] == [
            {"action": ref, "part": "result", "text": "the definition has no schema"}
        ]


async def test_hello_tells_twenty_differences(api: Api) -> None:
    ref = await remote(api)
    many = {"type": "object", "properties": {f"n{n}": {"type": "integer"} for n in range(50)}}
    async with working(api, ref, actions=[{"ref": ref, "parameters": many}]) as worker:
        assert len(worker.welcome["differences"]) == 20


@pytest.mark.parametrize(
    "wrong",
    [
        {"actions": [{"ref": "no.such_action"}]},
        {"routes": ["a b"]},
        {"labels": {"a b": "c"}},
        {"protocol": 2},
        {"slots": 0},
        {"actions": [{"ref": "shop.count", "parameters": {"type": "numbr"}}]},
        {"actions": [{"ref": "shop.count", "result": {"$ref": "https://example.org/schema"}}]},
    ],
)
async def test_wrong_hello_is_refused(api: Api, wrong: dict[str, Any]) -> None:
    await api.token("worker", "work") if "worker" not in api.secrets else None
    hello = {"name": "x", "language": "y", "sdk": "z", "slots": 1, "actions": [{"ref": "shop.count"}]}
    async with api.caller("worker") as caller:
        answer = await caller.post(f"{V1}/work/hello", json={**hello, **wrong})
        assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(("account", "only_work"), [("worker", True), ("api", False)])
async def test_account_of_a_service_is_enough(api: Api, template: str, account: str, only_work: bool) -> None:
    callback = await remote(api)
    ref = await remote(api, on_failure=[callback])
    await secrets.put(api.house.session, "public", "account_pin", "SECRET-31bc", by="test")
    if "worker" not in api.secrets:
        await api.token("worker", "work")
    owner = api.house.settings().database_url
    assert owner is not None
    if "PENSTOCK_TEST_TEMPLATE" not in os.environ:
        databases.has_roles(owner.get_secret_value(), template)
    url = SecretStr(databases.as_service(owner.get_secret_value(), account))
    settings = api.house.settings(database_url=url, **AS_USED)
    async with assembled(settings, role="gateway" if only_work else "api") as parts:
        backend = Backend.of(Client(parts.settings, parts.database, parts.publisher))
        if only_work:
            backend.find_caller, backend.audits = find_work_caller, False
        app = make_app(backend, only_work=only_work)
        served = Api(app, api.house, api.secrets)
        async with working(served, ref) as worker:
            for outcome in ("completed", "deferred", "handed_back", "failed"):
                id = await api.house.client.start(ref, secrets={"pin": "account_pin"})
                attempt = await worker.one()
                assert attempt["parameters"]["pin"] == "SECRET-31bc"
                await worker.ok("beat", {"holding": [key(attempt)]})
                line = {**key(attempt), "seq": 1, "line": outcome}
                assert await worker.ok("log", {"lines": [line]}) == {"lost": []}
                end = {"outcome": outcome, "delay": 600 if outcome == "deferred" else None}
                assert (await worker.finish(attempt, **end)).json() == {"lost": []}
                await api.house.client.cancel(id)
            await api.house.until(CALLED_BACK, callback)
            await cancel_unfinished(api, callback)
            async with served.caller("all") as stranger:
                answer = await stranger.post(f"{V1}/work/beat", json={}, headers=worker.headers)
            assert answer.status_code == 404
        async with served.caller(None) as stranger:
            assert (await stranger.post(f"{V1}/work/beat", json={})).status_code == 401
        await backend.close()


async def test_take_of_lost_worker_ends_before_its_wait(api: Api) -> None:
    """A worker that was frozen says hello again, and its former take must not wait on beside the new session."""
    ref = await remote(api)
    async with working(api, ref) as worker:
        taking = asyncio.create_task(worker.take(wait=60))
        await asyncio.sleep(0.5)
        lost = "update process set state = 'dead' where id = $1 returning 1"
        await api.house.rows(lost, UUID(worker.welcome["worker"]))
        async with asyncio.timeout(30):  # half of the wait
            assert await taking == []
        answer = await worker.post("take", {"request": str(uuid4()), "slots": 1, "wait": 1})
        assert (answer.status_code, answer.json()["type"]) == (404, "urn:penstock:error:UnknownSession")
