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
from penstock.operate import log_in_line, people
from penstock.operate.log_in_line import LogInLine
from penstock.store import people as store
from penstock_api.caller_address import grouped
from penstock_api.refused_log_ins import RefusedLogIns
from tests.penstock_api.conftest import Api
from tests.penstock_api.serving import serving

PASSWORD = "correct horse battery staple"
WRONG = "wrong horse battery staple"


@pytest.fixture(autouse=True)
async def ada(api: Api, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    quick = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)
    monkeypatch.setattr(people, "_hasher", lambda: quick)
    await people.create(api.house.session, "ada", PASSWORD, ["operator"], by="test")
    yield
    await api.house.rows("delete from person")
    await api.house.rows("delete from login_failure")


class Crowd:
    """Log-ins in a line, whose turns end when the test says so."""

    def __init__(self) -> None:
        self.line = LogInLine()
        self.begun: list[str] = []
        self.ends: dict[str, asyncio.Future[None]] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, label: str, name: str, address: str) -> None:
        async def log_in() -> None:
            async with self.line.turn(name, address):
                self.begun.append(label)
                await self.ends[label]

        self.ends[label] = asyncio.get_running_loop().create_future()
        self.tasks[label] = asyncio.create_task(log_in())
        for _ in range(3):
            await asyncio.sleep(0)

    async def end(self, label: str, error: Exception | None = None) -> None:
        if error is None:
            self.ends[label].set_result(None)
        else:
            self.ends[label].set_exception(error)
        await asyncio.wait([self.tasks[label]])
        for _ in range(3):
            await asyncio.sleep(0)

    def refused(self, label: str) -> bool:
        task = self.tasks[label]
        return task.done() and isinstance(task.exception(), TooManyAttempts)

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.wait(self.tasks.values())


@pytest.fixture
async def crowd() -> AsyncIterator[Crowd]:
    crowd = Crowd()
    yield crowd
    await crowd.close()


async def test_address_without_failures_goes_first(crowd: Crowd) -> None:
    await crowd.come("a", "x", "bad")
    await crowd.end("a", NotAuthenticated("wrong"))
    await crowd.come("b", "x", "worse")
    for n in range(2):
        await crowd.come(f"busy-{n}", "x", f"new-{n}")
    # "b" was first, and "worse" has no failure yet: two of the three are under way
    await crowd.come("c", "x", "bad")
    await crowd.come("right", "ada", "home")
    assert crowd.begun == ["a", "b", "busy-0"]
    await crowd.end("b", NotAuthenticated("wrong"))
    await crowd.end("busy-0")
    assert crowd.begun == ["a", "b", "busy-0", "busy-1", "right"]


async def test_line_is_bounded_by_name_address_and_length(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(log_in_line.OF_NAME_AND_ADDRESS + 1):
        await crowd.come(f"same-{n}", "ada", "one")
    assert [crowd.refused(f"same-{n}") for n in range(3)] == [False, False, True]
    for n in range(log_in_line.OF_ADDRESS):
        await crowd.come(f"name-{n}", f"name-{n}", "one")
    assert sum(crowd.refused(f"name-{n}") for n in range(log_in_line.OF_ADDRESS)) == 2
    for n in range(log_in_line.WAITING):
        await crowd.come(f"far-{n}", "x", f"far-{n}")
    assert len(crowd.line) == log_in_line.WAITING
    assert not any(crowd.refused(f"far-{n}") for n in range(log_in_line.WAITING))
    assert sum(crowd.refused(f"name-{n}") for n in range(log_in_line.OF_ADDRESS)) == log_in_line.OF_ADDRESS
    await crowd.come("last", "x", "last")
    assert crowd.refused("last")


async def test_full_line_refuses_the_worst_address_for_a_new_one(crowd: Crowd) -> None:
    for n in range(log_in_line.AT_ONCE):
        await crowd.come(f"busy-{n}", "x", f"busy-{n}")
    for _ in range(3):
        for name in ("u", "u", "u"):
            await crowd.come("guess", name, "attacker")
    for n in range(log_in_line.WAITING - len(crowd.line)):
        await crowd.come(f"far-{n}", "x", f"far-{n}")
    await crowd.come("right", "ada", "home")
    assert not crowd.refused("right")
    assert len(crowd.line) == log_in_line.WAITING


async def fill(crowd: Crowd, addresses: int, each: int) -> list[str]:
    """Let log-ins from addresses without failures wait behind two that are under way. Return what waits, in order."""
    for n in range(log_in_line.AT_ONCE):
        await crowd.come(f"busy-{n}", "x", f"busy-{n}")
    labels = [f"flood-{n}-{turn}" for turn in range(each) for n in range(addresses)]
    for label in labels:
        _, address, turn = label.split("-")
        await crowd.come(label, f"name-{turn}", f"far-{address}")
    return labels


async def test_new_address_waits_for_one_of_each_other(crowd: Crowd) -> None:
    """No address has failed yet. The line is full of second log-ins, of which one makes room for the first of another."""
    labels = await fill(crowd, addresses=log_in_line.WAITING // 2, each=2)
    await crowd.come("right", "ada", "home")
    assert not crowd.refused("right")
    assert [label for label in labels if crowd.refused(label)] == [labels[-1]]
    while "right" not in crowd.begun:
        under_way = next(label for label in crowd.begun if not crowd.tasks[label].done())
        await crowd.end(under_way, NotAuthenticated("wrong"))
    assert [label for label in crowd.begun if label.endswith("-1")] == ["busy-1"]


async def test_known_name_goes_first_in_a_flood_of_fresh_addresses(crowd: Crowd) -> None:
    await crowd.come("before", "ada", "home")
    await crowd.end("before")
    await fill(crowd, addresses=log_in_line.WAITING, each=1)
    await crowd.come("right", "ada", "home")
    await crowd.end("busy-0")
    assert crowd.begun == ["before", "busy-0", "busy-1", "right"]


async def test_known_name_with_wrong_passwords_goes_first_no_longer(crowd: Crowd) -> None:
    await crowd.come("before", "eve", "home")
    await crowd.end("before")
    for n in range(log_in_line.MISTAKES):
        await crowd.come(f"wrong-{n}", "eve", "home")
        await crowd.end(f"wrong-{n}", NotAuthenticated("wrong"))
    await fill(crowd, addresses=1, each=1)
    await crowd.come("again", "eve", "home")
    await crowd.end("busy-0")
    assert crowd.begun[-1] == "flood-0-0"


async def test_log_ins_cancelled_together_leave_the_line(crowd: Crowd) -> None:
    """Two turns end while the tasks of those that wait next are cancelled, and have not run yet."""
    labels = await fill(crowd, addresses=4, each=1)
    for label in ("busy-0", "busy-1", *labels[:3]):
        crowd.tasks[label].cancel()
    await asyncio.wait([crowd.tasks[label] for label in ("busy-0", "busy-1", *labels[:3])])
    assert all(crowd.tasks[label].cancelled() for label in ("busy-0", "busy-1", *labels[:3]))
    assert crowd.begun[2:] == labels[3:]
    assert not len(crowd.line)


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
        await store.set_password(tx, "ada", people._hasher().hash("another horse and battery"))
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

    with pytest.raises(TooManyAttempts, match="has left"):
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
    """Of 1,000 wrong ones from 50 addresses, sent before it, most are still unanswered or refused unhashed."""
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
    assert hashed_before <= 2 * log_in_line.AT_ONCE, "it waited for wrong passwords"


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
