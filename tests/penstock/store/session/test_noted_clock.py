"""The clock of the installation decides, and not that of the machine: in the client, the API and its pages."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import asyncpg
import httpx
import pytest

from penstock.errors import ConnectionFailed, InvalidInput, NotAllowed
from penstock.operate import list_filters
from penstock.store.session import clock, noted_clock
from penstock.store.session.database import Session
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.flows import shop
from tests.flows.installation import Installation

AHEAD = timedelta(days=31)
ROOT = Path(__file__).parents[4]
LOCAL_CLOCK = re.compile(r"\b(?:datetime\.now|datetime\.utcnow|datetime\.today|date\.today|time\.time)\(")
LOCAL: dict[str, str] = {
    "common/penstock/advance/turn_spans.py": "spans of OpenTelemetry are on the clock of their machine",
    "common/penstock/attempts/http/http_answers.py": "the answer of a server without a Date header",
    "common/penstock/attempts/traced_attempt.py": "spans",
    "common/penstock/cli/clock.py": "compares the clock of a server",
    "common/penstock/cli/schedule_views.py": "the preview of an expression has no installation",
    "common/penstock/engine/durable/lint.py": "names calls of users",
    "common/penstock/messaging/transports/rabbitmq/wire.py": "the timestamp of a message, which nothing reads",
    "common/penstock/operate/doctor/postgres.py": "compares the two clocks",
    "common/penstock/run/steering.py": "an action that is called outside a run",
    "common/penstock/service/embedded/server.py": "compares the times of files of this machine",
    "common/penstock/store/executions/stored_results.py": "the folder of a stored result",
    "common/penstock/store/session/noted_clock.py": "compares the two clocks",
    "common/penstock/tracing/export.py": "spans",
    "services/penstock_api/auth/identity_provider.py": "the provider has a clock of its own, and a leeway",
    "services/penstock_executor/event_spans.py": "spans",
    "services/penstock_executor/handlers/event_created.py": "spans",
    "services/penstock_executor/loops/drop_expired.py": "compares the two clocks",
}
"""The files that read the clock of their machine, and the reason."""


@asynccontextmanager
async def _api(house: Installation) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of an API that is open for its machine."""
    backend = Backend.of(house.client)
    transport = httpx.ASGITransport(make_app(backend))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as caller:
        yield caller
    await backend.close()


@pytest.fixture(autouse=True)
def _no_look() -> Iterator[None]:
    """Begin as a process does, which has not looked at the clock."""
    noted_clock.forget()
    yield
    noted_clock.forget()


@pytest.fixture
def _database_is_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Move the clock of the database against that of the machine."""
    for name in ("NOW", "IN_SECONDS"):
        ahead = f"clock_timestamp() + interval '{AHEAD.days} days'"
        monkeypatch.setattr(clock, name, getattr(clock, name).replace("clock_timestamp()", ahead))


def test_local_clock_is_read_only_where_it_must_be() -> None:
    readers = {
        path.relative_to(ROOT).as_posix()
        for part in ("common", "services")
        for path in (ROOT / part).rglob("*.py")
        if LOCAL_CLOCK.search(path.read_text())
    }
    assert sorted(readers ^ LOCAL.keys()) == [], "use clock.now(session), or noted_clock.noted()"


@pytest.mark.usefixtures("_database_is_ahead")
async def test_look_notes_the_difference(house: Installation) -> None:
    assert not noted_clock.is_noted()
    await noted_clock.note(house.session)
    assert abs(noted_clock.noted() - datetime.now(UTC) - AHEAD) < timedelta(days=1)
    assert noted_clock.noted() - list_filters.instant("since", "2d", noted_clock.noted) > timedelta(days=1)


async def test_lost_connection_leaves_the_last_look(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted_clock.note_difference(AHEAD)
    for error in (
        ConnectionResetError("gone"),
        asyncpg.ConnectionDoesNotExistError("gone"),
        NotAllowed("no"),
    ):

        async def lost(_: Any, error: Exception = error) -> datetime:
            raise error

        monkeypatch.setattr(clock, "now", lost)
        await noted_clock.note(house.session)
    assert abs(noted_clock.noted() - datetime.now(UTC) - AHEAD) < timedelta(days=1)


@pytest.mark.usefixtures("_database_is_ahead")
async def test_end_that_is_past_for_the_database_is_refused(house: Installation) -> None:
    await house.apply(*shop.ALL)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    with pytest.raises(InvalidInput, match="`until` is in the past"):
        await house.client.holds.hold("pack", "shop", by="ada", until=tomorrow)
    await house.client.holds.hold("pack", "shop", by="ada", until=tomorrow + AHEAD)


@pytest.mark.usefixtures("_database_is_ahead")
async def test_periods_of_the_api_end_at_the_database_clock(make_house: Any) -> None:
    async with make_house(api_access="open") as house, _api(house) as caller:
        await house.apply(*shop.ALL)
        id = await house.client.start("shop.charge", {"order": 7})
        for since, count in (("30d", 0), ("32d", 1)):
            page = await caller.get("/api/v1/executions", params={"since": since})
            assert (page.status_code, len(page.json()["items"])) == (200, count), page.text
        for path in ("/executions", f"/executions/{id}"):
            assert "31 d ago" in (await caller.get(path, headers={"accept": "text/html"})).text


class Machine:
    """The clock of a machine. It shows these seconds in turn."""

    def __init__(self, *seconds: float) -> None:
        self._instants = [START + timedelta(seconds=second) for second in seconds]

    def now(self, zone: object) -> datetime:
        assert zone is UTC
        return self._instants.pop(0)


START = datetime(2030, 1, 31, 9, tzinfo=UTC)


def answering(seconds: float | Exception) -> Session:
    """Return a session whose database shows these seconds, or fails."""

    async def fetch(sql: str) -> list[dict[str, datetime]]:
        if isinstance(seconds, Exception):
            raise seconds
        return [{"at": START + timedelta(seconds=seconds)}]

    return cast(Session, SimpleNamespace(fetch=fetch))


@pytest.mark.parametrize(
    ("at", "ahead"),
    [(3601, 3600), (-3599, -3600), (1, 0), (2.9, 0), (3, 0), (3.5, 2.5), (-0.9, 0), (-1, 0), (-1.5, -2.5)],
)
async def test_difference_counts_from_the_middle_of_the_look(
    at: float, ahead: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look takes two seconds, which explain as much of a difference."""
    monkeypatch.setattr(noted_clock, "datetime", Machine(0, 2, 100))
    await noted_clock.note(answering(at))
    assert noted_clock.noted() == START + timedelta(seconds=100 + ahead)


async def test_look_that_fails_leaves_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noted_clock, "datetime", Machine(0, 0, 2, 3, 4, 5, 6))
    failing = answering(ConnectionFailed("the database does not answer"))
    await noted_clock.note(failing)
    assert not noted_clock.is_noted()
    assert noted_clock.noted() == START
    await noted_clock.note(answering(60))
    await noted_clock.note(failing)
    assert noted_clock.is_noted()
    assert noted_clock.noted() == START + timedelta(seconds=5 + 57.5)
    noted_clock.note_difference(timedelta(hours=1))
    assert noted_clock.noted() == START + timedelta(hours=1, seconds=6)
    noted_clock.forget()
    assert not noted_clock.is_noted()
