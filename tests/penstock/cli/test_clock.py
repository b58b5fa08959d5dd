"""Ages and durations that commands count by the clock of the installation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextvars import copy_context
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest

from penstock.cli import server as server_of_command
from penstock.cli.command_runner import SERVER
from penstock.store.session import clock as database_clock
from penstock.store.session import noted_clock
from penstock.store.session.database import Session
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

AHEAD = timedelta(days=31)


@pytest.fixture(autouse=True)
def _no_look() -> Iterator[None]:
    """Begin as a command does, which has not looked at the clock."""
    noted_clock.forget()
    yield
    noted_clock.forget()


@pytest.fixture
def _database_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    now = database_clock.now

    async def later(session: Session) -> datetime:
        return await now(session) + AHEAD

    monkeypatch.setattr(database_clock, "now", later)


@pytest.mark.usefixtures("_database_is_ahead")
async def test_ages_and_durations_count_by_the_database(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 7})
    assert " 31 d " in (await penstock("executions")).out
    assert (await penstock("executions", "--since", "30d", "--json")).documents == []
    assert len((await penstock("executions", "--since", "32d", "--json")).documents) == 1
    for id in ("pack", "shop"), ("action", "shop.charge"):
        assert (await penstock("hold", *id, "--for", "2h")).code == 0
    held = (await penstock("holds", "--json")).documents
    untils = [datetime.fromisoformat(row["until"]) - datetime.now(UTC) for row in held]
    assert len(untils) == 2
    assert all(until > timedelta(days=30) for until in untils)


class Later(BaseHTTPRequestHandler):
    """A server with a clock that is ahead. It refuses every caller."""

    def do_GET(self) -> None:
        self.send_response_only(401)
        self.send_header("date", format_datetime(datetime.now(UTC) + AHEAD, usegmt=True))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


async def test_durations_count_by_the_server_over_http() -> None:
    server = HTTPServer(("127.0.0.1", 0), Later)
    serving = Thread(target=server.serve_forever)
    serving.start()
    try:
        context = copy_context()
        context.run(SERVER.set, (f"http://127.0.0.1:{server.server_port}", None))
        now = await asyncio.to_thread(context.run, server_of_command.now)
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
    assert abs(now - datetime.now(UTC) - AHEAD) < timedelta(minutes=1)
