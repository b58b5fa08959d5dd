"""The connection is lost once COMMIT was sent: whoever asked does not know, tries again, and has it done once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from penstock.store import crash_points
from tests.crash.points.sites import site_of
from tests.flows import shop
from tests.flows.installation import Installation


@contextmanager
def lost_after(function: str) -> Iterator[list[str]]:
    """Loses the connection on which a commit of this function has just been made, once."""
    lost: list[str] = []

    def reached(what: str, connection: object) -> None:
        site = site_of(sys._getframe(2), what)
        if what == "committed" and site is not None and site.function == function and not lost:
            assert isinstance(connection, asyncpg.Connection)
            lost.append(str(site))
            connection.terminate()
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    crash_points.reached = reached
    try:
        yield lost
    finally:
        crash_points.reached = None


@pytest.mark.parametrize("key", [None, "order-7"])
async def test_an_event_is_stored_once_though_its_commit_is_unknown(
    house: Installation, key: str | None
) -> None:
    await house.apply(*shop.ALL)
    with lost_after("Client._write_events") as lost:
        id = await house.client.publish("shop.order_placed", {"id": 7, "amount": 250}, key=key)
    assert lost
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
    with lost_after("submit") as lost:
        id = await house.client.start("shop.charge", {"order": 7}, key=key)
    assert lost
    assert await house.client.result(id, timeout=60) == {"order": 7, "charged": 0}
    assert await house.statuses() == {"completed": 1}


async def test_a_result_is_kept_once_though_its_commit_is_unknown(house: Installation) -> None:
    await house.start(*shop.ALL)
    with lost_after("finish") as lost:
        id = await house.client.start("shop.charge", {"order": 7})
        assert await house.client.result(id, timeout=60) == {"order": 7, "charged": 0}
    assert lost
    rows = await house.rows("select attempt, recoveries from execution where id = $1", id)
    assert [tuple(row) for row in rows] == [(1, 0)]
    await house.sound()
