from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from penstock.run.task_executors import Outcome, Run, attempt
from penstock_worker.executors.http.http import HttpExecutor
from tests.penstock_worker.executors.runs import run_of
from tests.penstock_worker.executors.web import Answer, Web, serving


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving() as web:
        yield web


@pytest.fixture
async def executor() -> AsyncIterator[HttpExecutor]:
    executor = HttpExecutor(allow=["127.0.0.1"])
    await executor.open()
    yield executor
    await executor.close(0)


async def _post(executor: HttpExecutor, url: str, **options: Any) -> tuple[Outcome, Run]:
    run, _ = run_of({"url": url, **options}, {"order": 7})
    return await attempt(executor, run), run


async def test_parameters_and_ids_are_posted_as_json(executor: HttpExecutor, web: Web) -> None:
    web.answer("/order", Answer(200, b' {"ok": true}'))
    outcome, run = await _post(executor, web.url("/order"), headers={"X-Shop": "7"})
    (request,) = web.requests
    id = str(run.event.execution_id)
    assert outcome.result == {"ok": True}
    assert request.method == "POST"
    assert request.json == {
        "execution_id": id,
        "attempt": 1,
        "max_attempts": 3,
        "namespace": "public::test::action",
        "root": str(run.event.root),
        "workflow": None,
        "task": None,
        "action": "test.action",
        "idempotency_token": id,
        "params": {"order": 7},
    }
    assert request.headers["content-type"] == "application/json"
    assert request.headers["idempotency-key"] == id
    assert request.headers["x-shop"] == "7"
    assert request.headers["host"] == f"127.0.0.1:{web.port}"


async def test_an_empty_answer_is_null(executor: HttpExecutor, web: Web) -> None:
    web.answer("/", Answer(204))
    outcome, _ = await _post(executor, web.url("/"))
    assert (outcome.kind, outcome.result) == ("completed", None)


async def test_requests_are_signed_with_the_worker_s_secret(
    executor: HttpExecutor, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_SECRET", "a secret")
    web.answer("/", Answer(204))
    await _post(executor, web.url("/"), secret_env="SHOP_SECRET")
    (request,) = web.requests
    signed = (
        f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    )
    digest = base64.b64encode(hmac.new(b"a secret", signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{digest}"


async def test_a_missing_secret_fails_and_may_be_retried_elsewhere(executor: HttpExecutor, web: Web) -> None:
    outcome, _ = await _post(executor, web.url("/"), secret_env="NO_SUCH_SECRET")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("ConfigurationError", None)
    assert web.requests == []


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, True) for status in (408, 425, 429, 500, 502, 503)),
        *((status, False) for status in (302, 400, 401, 404, 422)),
    ],
)
async def test_the_status_says_whether_to_retry(
    executor: HttpExecutor, web: Web, status: int, retryable: bool
) -> None:
    web.answer("/", Answer(status, b"the reason", {"Location": "/elsewhere"}))
    outcome, _ = await _post(executor, web.url("/"))
    assert outcome.error is not None
    assert outcome.error.retryable is retryable
    assert outcome.error.kinds == ("HttpStatus", f"HttpStatus{status}")
    assert outcome.error.answer == {"status": status, "body": "the reason"}
    assert outcome.error.traceback == ""


@pytest.mark.parametrize("broken", [False, True])
async def test_failure_names_request_without_secrets(executor: HttpExecutor, web: Web, broken: bool) -> None:
    web.answer("/bills?token=opensesame", Answer(hang_up=True) if broken else Answer(404))
    outcome, _ = await _post(executor, web.url("/bills?token=opensesame"))
    assert outcome.error is not None
    assert outcome.error.message.startswith(f"POST {web.url('/bills')}: ")
    assert "opensesame" not in outcome.error.message


async def test_retry_after_is_obeyed_as_seconds_and_as_a_date(executor: HttpExecutor, web: Web) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    later = format_datetime(now + timedelta(minutes=2), usegmt=True)
    date = {"Retry-After": later, "Date": format_datetime(now, usegmt=True)}
    web.answer("/", Answer(429, headers={"Retry-After": "7"}), Answer(503, headers=date))
    assert _retry_after(await _post(executor, web.url("/"))) == 7.0
    assert _retry_after(await _post(executor, web.url("/"))) == 120.0


@pytest.mark.parametrize(("value", "seconds"), [("-5", None), ("soon", None), ("99999999999", 86400.0)])
async def test_a_retry_after_that_makes_no_sense_is_bounded(
    executor: HttpExecutor, web: Web, value: str, seconds: float | None
) -> None:
    web.answer("/", Answer(503, headers={"Retry-After": value}))
    assert _retry_after(await _post(executor, web.url("/"))) == seconds


async def test_a_connection_that_cannot_be_made_is_retried(executor: HttpExecutor) -> None:
    outcome, _ = await _post(executor, "http://127.0.0.1:1/")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("HttpUnreachable", True)


async def test_a_connection_that_breaks_after_the_request_is_left_to_the_policy(
    executor: HttpExecutor, web: Web
) -> None:
    web.answer("/", Answer(hang_up=True))
    outcome, _ = await _post(executor, web.url("/"))
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("HttpUnreachable", None)


async def test_silence_ends_the_attempt(executor: HttpExecutor, web: Web) -> None:
    async def silent(_: object) -> Answer:
        await asyncio.sleep(60)
        return Answer()

    web.routes["/"] = silent
    outcome, _ = await _post(executor, web.url("/"), timeout=0.05)
    assert outcome.error is not None
    assert outcome.error.kinds == ("HttpUnreachable", "ReadTimeout")


async def test_an_answer_over_the_limit_is_not_read_to_its_end(executor: HttpExecutor, web: Web) -> None:
    web.answer("/", Answer(200, b'"' + b"x" * 5_000_000 + b'"'))
    run, _ = run_of({"url": web.url("/")}, result_limit=1000)
    outcome = await attempt(executor, run)
    assert outcome.error is not None
    assert outcome.error.type == "ResultNotStorable"


async def test_an_answer_in_an_encoding_that_was_not_asked_for_is_refused(
    executor: HttpExecutor, web: Web
) -> None:
    web.answer("/", Answer(200, b"...", {"Content-Encoding": "gzip"}))
    outcome, _ = await _post(executor, web.url("/"))
    assert outcome.error is not None
    assert outcome.error.type == "ResultNotStorable"
    assert web.requests[0].headers["accept-encoding"] == "identity"


async def test_a_redirect_that_keeps_the_post_is_followed(executor: HttpExecutor, web: Web) -> None:
    web.answer("/old", Answer(308, headers={"Location": "/new"}))
    web.answer("/new", Answer(200, b"1"))
    outcome, _ = await _post(executor, web.url("/old"), headers={"X-Shop": "7"})
    assert outcome.result == 1
    assert [(request.method, request.path) for request in web.requests] == [
        ("POST", "/old"),
        ("POST", "/new"),
    ]
    assert web.requests[0].body == web.requests[1].body
    assert web.requests[1].headers["x-shop"] == "7"


async def test_headers_are_not_sent_on_to_another_host(executor: HttpExecutor, web: Web) -> None:
    async with serving() as other:
        web.answer("/", Answer(307, headers={"Location": other.url("/")}))
        other.answer("/", Answer(200, b"1"))
        outcome, _ = await _post(executor, web.url("/"), headers={"Authorization": "Bearer secret"})
        assert outcome.result == 1
        assert "authorization" in web.requests[0].headers
        assert "authorization" not in other.requests[0].headers


async def test_a_redirect_to_a_private_address_is_refused(executor: HttpExecutor, web: Web) -> None:
    web.answer("/", Answer(307, headers={"Location": f"http://127.0.0.2:{web.port}/metadata"}))
    outcome, _ = await _post(executor, web.url("/"))
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("AddressRefused", False)
    assert len(web.requests) == 1


@pytest.mark.parametrize("location", ["", "ftp://127.0.0.1/", "file:///etc/passwd"])
async def test_a_redirect_to_something_else_is_refused(
    executor: HttpExecutor, web: Web, location: str
) -> None:
    web.answer("/", Answer(307, headers={"Location": location} if location else {}))
    outcome, _ = await _post(executor, web.url("/"))
    assert outcome.error is not None
    assert outcome.error.retryable is False


async def test_redirects_end(executor: HttpExecutor, web: Web) -> None:
    web.answer("/", Answer(307, headers={"Location": "/"}))
    outcome, _ = await _post(executor, web.url("/"))
    assert outcome.error is not None
    assert outcome.error.type == "DefinitionError"
    assert len(web.requests) == 4


async def test_a_private_address_is_refused_unless_it_is_allowed(web: Web) -> None:
    executor = HttpExecutor()
    await executor.open()
    outcome, _ = await _post(executor, web.url("/"))
    await executor.close(0)
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("AddressRefused", False)
    assert "127.0.0.1 is not a public address" in outcome.error.message
    assert "PENSTOCK_EXECUTORS" in outcome.error.message
    assert outcome.error.traceback == "", "the action has no code"
    assert web.requests == []


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://example.org/"},
        {"url": "/only/a/path"},
        {"url": "http://user:password@example.org/"},
        {"url": "http://example.org/", "headers": {"Host": "internal"}},
        {"url": "http://example.org/", "headers": {"webhook-signature": "v1,forged"}},
        {"url": "http://example.org/", "method": "GET"},
    ],
)
async def test_wrong_options_fail_for_good(executor: HttpExecutor, options: dict[str, Any]) -> None:
    outcome = await attempt(executor, run_of(options)[0])
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("DefinitionError", False)
    assert "user:password" not in outcome.error.message


async def test_connections_are_kept_for_the_next_request(executor: HttpExecutor, web: Web) -> None:
    web.answer("/", Answer(200, b"1"))
    for _ in range(3):
        assert (await _post(executor, web.url("/")))[0].result == 1
    assert web.connections == 1


def _retry_after(answered: tuple[Outcome, Run]) -> float | None:
    assert answered[0].error is not None
    return answered[0].error.retry_after
