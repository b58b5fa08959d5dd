"""Log-ins that cannot be held shut, and that do not outlive a change of the password."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest
from argon2 import PasswordHasher
from structlog.testing import capture_logs

from penstock.errors import NotAuthenticated, TooManyAttempts
from penstock.operate import passwords, people, sign_in_queue
from penstock.operate.sign_in_queue import LogInLine
from penstock.store.access import people as store
from penstock_api.requests.caller_address import grouped
from penstock_api.sign_in_refusal_log import RefusedLogIns
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving

PASSWORD = "correct horse battery staple"
WRONG = "wrong horse battery staple"


@pytest.fixture(autouse=True)
async def ada(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: quick)
    await people.create(api.house.session, "ada", PASSWORD, ["operator"], by="test")
    yield
    await api.house.rows("delete from person")
    await api.house.rows("delete from login_failure")


async def test_flood_of_refused_log_ins_writes_two_lines() -> None:
    ends: list[Callable[[], None]] = []
    refused = RefusedLogIns(lambda end: ends.append(end))
    with capture_logs() as lines:
        for n in range(1000):
            refused.note(f"name-{n}", f"192.0.2.{n % 50}", "wrong")
        ends.pop()()
        ends.pop()()
    assert not ends
    assert [line["count"] for line in lines] == [1, 999]
    assert {line["event"] for line in lines} == {"api.log_in_refused"}


async def test_refused_log_in_after_a_quiet_time_is_logged_at_once() -> None:
    ends: list[Callable[[], None]] = []
    refused = RefusedLogIns(lambda end: ends.append(end))
    with capture_logs() as lines:
        refused.note("ada", "192.0.2.1", "wrong")
        ends.pop()()
        refused.note("ada", "192.0.2.1", "wrong")
    assert [line["count"] for line in lines] == [1, 1]


async def begin(api: Api, name: str, password: str, address: str = "192.0.2.1", **more: Any) -> people.Begun:
    caller = people.LogInCaller(address, **more)
    return await people.log_in(
        api.house.client.session, name, password, line=api.app.state.backend.log_ins, caller=caller
    )


async def test_log_in_under_way_ends_with_the_password(api: Api) -> None:
    """The old password is verified before the change commits, and the session would begin after it."""
    async with api.house.client.database.session().transaction() as tx:
        await store.set_password(tx, "ada", passwords.hasher().hash("another horse and battery"))
        log_in = asyncio.create_task(begin(api, "ada", PASSWORD))
        async with asyncio.timeout(20):
            while not log_in.done() and not await waits_for_a_lock(api):
                await asyncio.sleep(0.01)
    with pytest.raises(NotAuthenticated):
        await log_in
    assert not await api.house.rows("select 1 from person_session")


async def waits_for_a_lock(api: Api) -> bool:
    async with api.app.state.backend.pool.session() as session:
        return bool(
            await session.fetch(
                "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like '%person_session%'"
            )
        )


async def test_caller_that_has_left_is_not_hashed(api: Api) -> None:
    async def has_left() -> bool:
        return True

    with pytest.raises(TooManyAttempts, match="closed the connection"):
        await begin(api, "ada", WRONG, has_left=has_left)
    assert not await api.house.rows("select 1 from login_failure")


async def test_disconnected_caller_is_noticed_in_the_line(api: Api) -> None:
    """Two log-ins hold both turns; the caller of the third closes its connection before its turn comes."""
    async with serving(api.app) as address, httpx.AsyncClient(base_url=address, timeout=30) as browser:
        async with api.house.client.database.session().transaction() as tx:
            await tx.execute("lock table login_failure in access exclusive mode")
            first = [
                asyncio.create_task(
                    browser.post("/api/v1/session", json={"name": f"held-{n}", "password": WRONG})
                )
                for n in range(2)
            ]
            line: LogInLine = api.app.state.backend.log_ins
            async with asyncio.timeout(20):
                while len(line._under_way) < 2:
                    await asyncio.sleep(0.01)
                host, port = address.removeprefix("http://").split(":")
                _, writer = await asyncio.open_connection(host, int(port))
                body = b'{"name": "left", "password": "wrong horse battery staple"}'
                head = b"POST /api/v1/session HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
                while not len(line):
                    await asyncio.sleep(0.01)
                writer.close()
                await writer.wait_closed()
        assert {answer.status_code for answer in await asyncio.gather(*first)} == {401}
        async with asyncio.timeout(20):
            while line._under_way or len(line):
                await asyncio.sleep(0.01)
    names = {row["name"] for row in await api.house.rows("select name from login_failure")}
    assert names == {"held-0", "held-1"}


async def test_failures_elsewhere_do_not_lock_out_a_known_address(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(people, "MOST_OF_NAME", 3)
    await begin(api, "ada", PASSWORD, "192.0.2.7")
    for n in range(6):
        with pytest.raises((NotAuthenticated, TooManyAttempts)):
            await begin(api, "ada", WRONG, f"198.51.100.{n}")
    with pytest.raises(TooManyAttempts):
        await begin(api, "ada", PASSWORD, "203.0.113.1")
    assert (await begin(api, "ada", PASSWORD, "192.0.2.7")).name == "ada"


async def test_right_password_is_answered_beside_a_flood(api: Api) -> None:
    """Most of the 1,000 wrong passwords that 50 addresses sent before it are still unanswered, or refused without hashing."""
    answered: list[bool] = []

    async def guess(n: int) -> None:
        try:
            await begin(api, f"name-{n % 7}", WRONG, f"198.51.100.{n % 50}")
        except (NotAuthenticated, TooManyAttempts) as error:
            answered.append(isinstance(error, NotAuthenticated))

    for n in range(50):  # each address fails once before
        await guess(n)
    answered.clear()
    flood = [asyncio.create_task(guess(n)) for n in range(1000)]
    await asyncio.sleep(0)
    begun = await begin(api, "ada", PASSWORD)
    hashed_before = sum(answered)
    await asyncio.gather(*flood)
    assert begun.name == "ada"
    assert hashed_before <= 2 * sign_in_queue.AT_ONCE, "it waited for wrong passwords"


async def test_log_in_without_a_place_is_refused_unread(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that no log-in has is answered 422 where it is read."""
    async with api.caller(None) as call:
        assert (await call.post("/api/v1/session", json={})).status_code == 422
        monkeypatch.setattr(api.app.state.backend.log_ins, "refuses", lambda address: True)
        refused = await call.post("/api/v1/session", json={})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, str(sign_in_queue.RETRY_AFTER))
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.headers["x-content-type-options"] == "nosniff"
    assert refused.json()["hint"]


async def test_form_without_a_place_is_refused_unread(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form with a wrong name is answered 401 where it is read; the refusal comes before the check of its origin, too."""
    form = {"name": "ada", "password": WRONG}
    async with api.caller(None) as call:
        assert (await call.post("/sign-in", data=form)).status_code == 401
        monkeypatch.setattr(api.app.state.backend.log_ins, "refuses", lambda address: True)
        refused = await call.post("/sign-in", data=form)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, str(sign_in_queue.RETRY_AFTER))
    assert refused.headers["content-type"].startswith("text/html")
    assert "content-security-policy" in refused.headers
    assert "too many sign-ins" in refused.text


@pytest.mark.parametrize(
    ("host", "caller"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("testclient", "testclient"),
    ],
)
def test_addresses_of_one_caller_are_counted_together(host: str, caller: str) -> None:
    assert grouped(host) == caller
