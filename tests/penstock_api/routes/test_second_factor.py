"""The second factor: set up, asked for after the password, good once, bounded, and turned off."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from argon2 import PasswordHasher
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from penstock.operate import passwords, people, second_factor
from penstock.store.session.database import Session
from tests.penstock_api.conftest import Api
from tests.penstock_api.pages.test_sign_in import HTML, visitor
from tests.penstock_api.routes.test_users import PAGE, PASSWORD, V1, log_in

TOTP_ROUTE = f"{V1}/account/totp"
OLD = {"current_password": PASSWORD}


@dataclass(slots=True)
class Clock:
    """The clock of the codes."""

    now: float = 1_800_000_000.0

    async def of_database(self, session: Session) -> datetime:
        return datetime.fromtimestamp(self.now, UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    stopped = Clock()
    monkeypatch.setattr(second_factor, "clock", SimpleNamespace(now=stopped.of_database))
    return stopped


@pytest.fixture(autouse=True)
async def ada(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Create a user with a password that is hashed in no time."""
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(passwords, "hasher", lambda: quick)
    await people.create(api.house.session, "ada", PASSWORD, ["viewer"], by="test")
    yield
    for table in ("person", "login_failure", "secret"):
        await api.house.rows(f"delete from {table}")


@pytest.fixture
async def browser(api: Api) -> AsyncIterator[httpx.AsyncClient]:
    async with api.caller(None) as client:
        client.headers.update(PAGE)
        yield client


def code_of(secret: str, at: float) -> str:
    return TOTP(base64.b32decode(secret), 6, SHA1(), 30).generate(int(at)).decode()


async def set_up(browser: httpx.AsyncClient, clock: Clock) -> tuple[str, list[str]]:
    """Sign in, and turn the second factor on. Return its secret and the recovery codes."""
    await log_in(browser)
    begun = await browser.post(TOTP_ROUTE, json=OLD)
    assert begun.status_code == 200, begun.text
    secret = begun.json()["secret"]
    confirmed = await browser.post(f"{TOTP_ROUTE}/confirm", json={"code": code_of(secret, clock.now)})
    assert confirmed.status_code == 200, confirmed.text
    clock.now += 30
    return secret, confirmed.json()["recovery_codes"]


async def send(browser: httpx.AsyncClient, code: str) -> httpx.Response:
    return await browser.post(f"{V1}/session/code", json={"code": code})


async def is_in(browser: httpx.AsyncClient) -> bool:
    return (await browser.get(f"{V1}/session")).status_code == 200


@pytest.mark.parametrize(
    ("now", "code"),
    [(1111111109, "081804"), (1234567890, "005924"), (20000000000, "353130")],
)
def test_codes_are_those_of_the_standard(now: int, code: str) -> None:
    """RFC 6238, appendix B: the last six of eight digits."""
    secret = base64.b32encode(b"12345678901234567890").decode()
    step = now // 30
    assert [second_factor.step_of(secret, code, now + 30 * n) for n in (-2, -1, 0, 1, 2)] == [
        None, step, step, step, None,
    ]  # fmt: skip


async def test_factor_counts_once_it_is_confirmed(api: Api, browser: httpx.AsyncClient, clock: Clock) -> None:
    await log_in(browser)
    assert (await browser.post(TOTP_ROUTE, json={"current_password": "wrong"})).status_code == 403
    begun = (await browser.post(TOTP_ROUTE, json=OLD)).json()
    query = parse_qs(urlsplit(begun["uri"]).query)
    assert begun["uri"].startswith("otpauth://totp/Penstock:ada?")
    assert (query["secret"], query["issuer"]) == ([begun["secret"]], ["Penstock"])
    rows = await api.house.rows("select s::text from secret s where name = 'totp:ada'")
    assert len(rows) == 1
    assert begun["secret"] not in rows[0][0]
    async with api.caller(None) as other:
        assert (await log_in(other)).json()["needs_code"] is False
        assert await is_in(other)
        wrong = await browser.post(f"{TOTP_ROUTE}/confirm", json={"code": "000000"})
        assert wrong.status_code == 403
        code = code_of(begun["secret"], clock.now - 30)
        confirmed = await browser.post(f"{TOTP_ROUTE}/confirm", json={"code": code})
        assert len(set(confirmed.json()["recovery_codes"])) == 10
        assert (await is_in(browser), await is_in(other)) == (True, False)
    state = (await browser.get(TOTP_ROUTE)).json()
    assert (state["since"] is not None, state["recovery_codes"]) == (True, 10)
    assert (await browser.post(TOTP_ROUTE, json=OLD)).status_code == 409
    assert (await browser.post(f"{TOTP_ROUTE}/confirm", json={"code": code})).status_code == 409
    kept = str(
        [tuple(row) for row in await api.house.rows("select details from audit where by = 'user:ada'")]
    )
    assert not [text for text in (begun["secret"], code, *confirmed.json().values()) if str(text) in kept]
    assert await api.house.rows(
        "select 1 from audit where operation = 'account_confirm_totp' and outcome = 'done'"
    )


async def test_code_is_asked_after_the_password_and_good_once(
    api: Api, browser: httpx.AsyncClient, clock: Clock
) -> None:
    secret, _ = await set_up(browser, clock)
    async with api.caller(None) as other:
        other.headers.update(PAGE)
        first = code_of(secret, clock.now)
        assert (await send(other, first)).status_code == 401  # without a password
        begun = await log_in(other)
        assert (begun.status_code, begun.json()["needs_code"]) == (200, True)
        assert not await is_in(other)
        used = code_of(secret, clock.now - 30)  # confirmed the factor
        assert (await send(other, used)).status_code == 401
        half = dict(other.cookies)
        entered = await send(other, f" {first[:3]} {first[3:]} ")
        assert (entered.status_code, entered.json()["needs_code"]) == (200, False), entered.text
        assert await is_in(other)
        assert dict(other.cookies) != half
        await log_in(other)
        assert (await send(other, first)).status_code == 401
        assert (await send(other, code_of(secret, clock.now + 60))).status_code == 401
        assert (await send(other, code_of(secret, clock.now + 30))).status_code == 200
        async with api.caller(None) as thief:
            thief.headers.update(PAGE)
            thief.cookies.update(half)
            clock.now += 60
            assert (await send(thief, code_of(secret, clock.now))).status_code == 401
    operations = await api.house.rows(
        "select operation from audit where by = 'user:ada' and operation like 'users_log_in%' order by id desc limit 3"
    )
    assert [row[0] for row in operations] == [
        "users_log_in_with_code",
        "users_log_in",
        "users_log_in_with_code",
    ]


async def test_of_two_log_ins_with_one_code_one_succeeds(
    api: Api, browser: httpx.AsyncClient, clock: Clock
) -> None:
    secret, recovery = await set_up(browser, clock)
    for code in (code_of(secret, clock.now), recovery[0]):
        async with api.caller(None) as first, api.caller(None) as second:
            for other in (first, second):
                other.headers.update(PAGE)
                await log_in(other)
            answers = await asyncio.gather(send(first, code), send(second, code))
            assert sorted(answer.status_code for answer in answers) == [200, 401]


async def test_recovery_code_is_good_once(api: Api, browser: httpx.AsyncClient, clock: Clock) -> None:
    _, recovery = await set_up(browser, clock)
    digests = await api.house.rows("select r::text from recovery_code r")
    assert len(digests) == 10
    assert not [row for row in digests if recovery[0] in row[0]]
    async with api.caller(None) as other:
        other.headers.update(PAGE)
        await log_in(other)
        assert (await send(other, "aaaa-bbbb-cccc-dddd")).status_code == 401
        assert (await send(other, recovery[0].upper().replace("-", " "))).status_code == 200
        await log_in(other)
        assert (await send(other, recovery[0])).status_code == 401
        assert (await send(other, recovery[1])).status_code == 200
    assert (await browser.get(TOTP_ROUTE)).json()["recovery_codes"] == 8


async def test_wrong_codes_are_bounded_as_passwords(
    api: Api, browser: httpx.AsyncClient, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, recovery = await set_up(browser, clock)
    monkeypatch.setattr(people, "MOST_OF_BOTH", 3)
    async with api.caller(None) as other:
        other.headers.update(PAGE)
        await log_in(other)
        answers = [(await send(other, "000000")).status_code for _ in range(3)]
        assert answers == [401] * 3
        for code in (code_of(secret, clock.now), recovery[0]):
            assert (await send(other, code)).status_code == 429
        assert (await log_in(other)).status_code == 429


async def test_new_password_ends_a_log_in_that_waits_for_its_code(
    api: Api, browser: httpx.AsyncClient, clock: Clock
) -> None:
    secret, _ = await set_up(browser, clock)
    async with api.caller(None) as other, api.caller(None) as late:
        for client in (other, late):
            client.headers.update(PAGE)
        await log_in(late)
        await api.house.rows("update person_session set expires_at = now() where needs_code")
        assert (await send(late, code_of(secret, clock.now))).status_code == 401
        await log_in(other)
        await people.set_password(api.house.session, "ada", "another horse and battery")
        assert (await send(other, code_of(secret, clock.now))).status_code == 401


async def test_factor_is_turned_off_by_password_or_administrator(
    api: Api, browser: httpx.AsyncClient, call: httpx.AsyncClient, clock: Clock
) -> None:
    for turn_off in ("owner", "administrator"):
        await set_up(browser, clock)
        if turn_off == "owner":
            wrong = await browser.post(f"{TOTP_ROUTE}/off", json={"current_password": "wrong"})
            assert wrong.status_code == 403
            off = await browser.post(f"{TOTP_ROUTE}/off", json=OLD)
        else:
            assert (await call.get(f"{V1}/users")).json()[0]["totp_since"] is not None
            off = await call.delete(f"{V1}/users/ada/totp")
        assert off.status_code == 204
        assert await api.house.rows("select 1 from secret union all select 1 from recovery_code") == []
        assert (await log_in(browser)).json()["needs_code"] is False
    await set_up(browser, clock)
    await people.delete(api.house.session, "ada")
    assert await api.house.rows("select 1 from secret union all select 1 from recovery_code") == []


async def test_pages_lead_through_set_up_and_sign_in(api: Api, clock: Clock) -> None:
    credentials = {"name": "ada", "password": PASSWORD, "then": "/executions?status=failed"}
    async with visitor(api) as client:
        await client.post("/sign-in", data=credentials)
        shown = await client.post("/account/totp", data=OLD)
        [secret] = re.findall(r"<code>([A-Z2-7]{32})</code>", shown.text)
        assert f"secret={secret}" in shown.text
        again = await client.post("/account/totp/confirm", data={"code": "12"})
        assert (again.status_code, secret in again.text) == (403, True)
        codes = await client.post("/account/totp/confirm", data={"code": code_of(secret, clock.now)})
        assert len(re.findall(r"<code>([a-z2-7-]{19})</code>", codes.text)) == 10
        assert "You have 10 unused recovery codes" in (await client.get("/account")).text
        clock.now += 30
        async with visitor(api) as other:
            asked = await other.post("/sign-in", data=credentials)
            assert asked.headers["location"] == "/sign-in/code?then=%2Fexecutions%3Fstatus%3Dfailed"
            assert (await other.get("/account", headers=HTML)).status_code == 303
            form = await other.get(asked.headers["location"])
            assert 'value="/executions?status=failed"' in form.text
            wrong = await other.post("/sign-in/code", data={"code": "000000", "then": "/"})
            assert (wrong.status_code, 'role="alert"' in wrong.text) == (401, True)
            right = {"code": code_of(secret, clock.now), "then": "/executions"}
            entered = await other.post("/sign-in/code", data=right)
            assert (entered.status_code, entered.headers["location"]) == (303, "/executions")
            assert (await other.get("/account")).status_code == 200
        assert (await client.post("/account/totp/off", data={})).status_code == 422
        assert (await client.post("/account/totp/off", data=OLD)).status_code == 303
        assert "Set up the second factor" in (await client.get("/account")).text
