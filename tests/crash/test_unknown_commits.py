"""The connection is lost once COMMIT was sent: the caller does not know its outcome, tries again, and has it done
once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import asyncpg
import pytest

from penstock import Limit, action, current
from penstock.language.workflows import from_yaml
from penstock.run.steering import Defer
from penstock.store.session import crash_points
from tests.crash.points.sites import site_of, sites
from tests.flows import shop
from tests.flows.installation import Installation


@contextmanager
def lost_after(function: str, moment: str = "committed") -> Iterator[list[str]]:
    """Loses the connection on which a commit of this function has just been made (or is about to be), once."""
    sites_hit: list[str] = []
    sites()  # parsed here, and not by two threads at once when both come to the hook

    def reached(what: str, connection: object) -> None:
        site = site_of(sys._getframe(2), what)
        if what == moment and site is not None and site.function == function and not sites_hit:
            assert isinstance(connection, asyncpg.Connection)
            sites_hit.append(str(site))
            connection.terminate()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    crash_points.reached = reached
    try:
        yield sites_hit
    finally:
        crash_points.reached = None


@contextmanager
def lost_reading(function: str) -> Iterator[list[str]]:
    """Loses the connection on which this function has just read something, once."""
    functions_hit: list[str] = []

    def reached(what: str, connection: object) -> None:
        if what == "committed" and not functions_hit and function in _callers(6):
            assert isinstance(connection, asyncpg.Connection)
            functions_hit.append(function)
            connection.terminate()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    crash_points.reached = reached
    try:
        yield functions_hit
    finally:
        crash_points.reached = None


def _callers(depth: int) -> list[str]:
    frame: FrameType | None = sys._getframe(2)
    names: list[str] = []
    while frame is not None and len(names) < depth:
        names.append(frame.f_code.co_name)
        frame = frame.f_back
    return names


@pytest.mark.parametrize("key", [None, "order-7"])
async def test_an_event_is_stored_once_though_its_commit_is_unknown(
    house: Installation, key: str | None
) -> None:
    await house.apply(*shop.ALL)
    with lost_after("Publishing._write") as hits:
        id = await house.client.publish("shop.order_placed", {"id": 7, "amount": 250}, key=key)
    assert hits
    assert [row["id"] for row in await house.rows("select id from event")] == [id]
    await house.start(*shop.ALL)
    await house.until("select 1 from execution where finished_at is not null")
    await house.quiet()
    assert await house.statuses() == {"completed": 1}


@pytest.mark.parametrize("key", [None, "order-7"])
async def test_an_execution_is_started_once_though_its_commit_is_unknown(
    house: Installation, key: str | None
) -> None:
    await house.start(*shop.ALL)
    with lost_after("submit") as hits:
        id = await house.client.start("shop.charge", {"order": 7}, key=key)
    assert hits
    assert await house.client.result(id, timeout=60) == {"order": 7, "charged": 0}
    assert await house.statuses() == {"completed": 1}


RUNS: list[Any] = []


@action(pack="once", on_worker_loss="fail")
async def at_most_once() -> int:
    RUNS.append(current().execution_id)
    return current().attempt


three_steps = from_yaml("""
workflow: once.three_steps
tasks:
  one: {action: once.at_most_once}
  two: {action: once.at_most_once, needs: [one]}
  three: {action: once.at_most_once, needs: [two]}
output: "{{ [tasks.one.result, tasks.two.result, tasks.three.result] }}"
""")


@action(pack="once")
async def counted() -> int:
    RUNS.append(current().execution_id)
    return current().attempt


two_steps = from_yaml("""
workflow: once.two_steps
tasks:
  one: {action: once.counted}
  two: {action: once.counted, needs: [one]}
output: "{{ [tasks.one.result, tasks.two.result] }}"
""")


@pytest.mark.parametrize("moment", ["committing", "committed"])
async def test_workflow_begins_once_though_its_commit_is_unknown(house: Installation, moment: str) -> None:
    await house.start(counted, two_steps)
    for _ in range(5):
        assert await house.client.run("once.two_steps", timeout=20) == [1, 1]
        await house.client._submits.settle()
    RUNS.clear()
    with lost_after("submit", moment) as hits:
        id = await house.client.start("once.two_steps")
        assert await house.client.result(id, timeout=60) == [1, 1]
    assert hits == ["common/penstock/store/workflows/first_turns.py:submit#1 (commit)"]
    rows = await house.rows("select attempt, recoveries from execution where parent = $1", id)
    assert [tuple(row) for row in rows] == [(1, 0)] * 2
    assert len(RUNS) == 2
    assert len(await house.rows("select from execution where parent is null")) == 6
    await house.sound()


@action(pack="once")
async def twice() -> Any:
    if current().attempt == 1:
        raise Defer(delay=0.01, state={"page": 7})
    return current().state


async def test_a_claim_is_known_to_its_worker_though_its_answer_was_lost(house: Installation) -> None:
    await house.start(at_most_once)
    assert await house.client.run("once.at_most_once", timeout=20) == 1  # its worker has looked it up
    with lost_after("claim") as hits:
        id = await house.client.start("once.at_most_once")
        assert await house.client.result(id, timeout=60) == 1
    assert hits
    rows = await house.rows("select attempt, recoveries from execution where id = $1", id)
    assert [tuple(row) for row in rows] == [(1, 0)]
    await house.sound()


async def test_a_carried_value_comes_with_the_claim(house: Installation) -> None:
    await house.start(twice)
    with lost_reading("carried_over") as hits:
        id = await house.client.start("once.twice")
        assert await house.client.result(id, timeout=60) == {"page": 7}
    assert not hits, "a statement between the claim and its attempts can lose them"
    rows = await house.rows("select attempt, recoveries from execution where id = $1", id)
    assert [tuple(row) for row in rows] == [(2, 0)]


async def test_a_result_is_kept_once_though_its_commit_is_unknown(house: Installation) -> None:
    await house.start(*shop.ALL)
    with lost_after("finish") as hits:
        id = await house.client.start("shop.charge", {"order": 7})
        assert await house.client.result(id, timeout=60) == {"order": 7, "charged": 0}
    assert hits
    rows = await house.rows("select attempt, recoveries from execution where id = $1", id)
    assert [tuple(row) for row in rows] == [(1, 0)]
    await house.sound()


@action(pack="once", on_worker_loss="fail", limits=[Limit(1)])
async def one_by_one() -> int:
    RUNS.append(current().execution_id)
    return current().attempt


@pytest.mark.parametrize("moment", ["committing", "committed"])
async def test_a_run_from_the_line_runs_once_despite_unknown_commit(house: Installation, moment: str) -> None:
    await house.start(one_by_one)
    RUNS.clear()
    with lost_after("finish_and_claim", moment) as hits:
        ids = await house.client.start_many("once.one_by_one", [{}] * 6)
        assert [await house.client.result(id, timeout=60) for id in ids] == [1] * 6
    assert hits
    rows = await house.rows("select attempt, recoveries from execution")
    assert [tuple(row) for row in rows] == [(1, 0)] * 6
    assert sorted(RUNS) == sorted(ids)
    await house.quiet()
    await house.sound()


@pytest.mark.parametrize("moment", ["committing", "committed"])
@pytest.mark.parametrize(
    "site",
    [
        "services/penstock_worker/ending/next_work.py:_at_once#1 (commit)",  # its first step
        "common/penstock/store/workflows/steps.py:_take_plain#1 (commit)",  # the next one, which the worker remembers
    ],
)
async def test_the_next_step_runs_once_though_its_commit_is_unknown(
    house: Installation, site: str, moment: str
) -> None:
    await house.start(at_most_once, three_steps)
    for _ in range(2):  # its worker has looked everything up
        assert await house.client.run("once.three_steps", timeout=20) == [1, 1, 1]
    RUNS.clear()
    with lost_after(site.split(":")[1].split("#")[0], moment) as hits:
        id = await house.client.start("once.three_steps")
        assert await house.client.result(id, timeout=60) == [1, 1, 1]
    assert hits == [site], "with what follows"
    rows = await house.rows("select attempt, recoveries from execution where parent = $1", id)
    assert [tuple(row) for row in rows] == [(1, 0)] * 3
    assert len(RUNS) == 3
    await house.sound()
