"""One secret is planted through every door, in every form that code makes of it, and everything that the installation wrote is
searched for it: all tables, the output of all processes, what the API and the pages show, metrics, exports and messages."""

from __future__ import annotations

import base64
import json
import urllib.parse
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.language.loading import load_all
from penstock.operate import secrets
from penstock.operate.apply import register
from penstock_api.app import make_app
from penstock_api.backend import Backend
from tests.crash.processes import Fleet
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY
from tests.penstock_api.auth.test_access import guarded
from tests.security.secret_search import LINES, SECRET, shows
from tests.servers.process import free_port

BY_DESIGN = {"payload", "archive", "event", "enforcement", "dead_letter", "outbox"}
"""Tables that keep what callers gave, marked or not: what runs again is read from them."""
EVERY_TABLE = """
select c.relname::text as name from pg_class c
where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1
"""


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        repr(SECRET),
        json.dumps(SECRET),
        urllib.parse.quote(SECRET),
        base64.b64encode(b"user:" + SECRET.encode()).decode(),
        f"at {LINES[1]} there",
        json.dumps(json.dumps(SECRET)),
        repr(SECRET.encode()),
    ],
)
def test_the_search_sees_every_form(text: str) -> None:
    assert shows(text)


def test_the_search_sees_nothing_where_nothing_is() -> None:
    assert (
        shows(
            "*** Zürich third line of the log *** " + base64.b64encode(b"something else, and long").decode()
        )
        is None
    )


@pytest.fixture
async def written(house: Installation, tmp_path: Path) -> tuple[Installation, Path]:
    """An installation whose worker is a process of its own, in which the secret went through every door."""
    file = tmp_path / "leaky.py"
    file.write_text(Path(__file__).with_name("leaky.py").read_text())
    return house, file


async def plant(house: Installation, name: str, **parameters: Any) -> None:
    id = await house.client.start(f"leaky.{name}", **parameters)
    status = "waiting" if name == "asking" else None
    await house.until(
        "select 1 from execution where id = $1 and (finished_at is not null or status = $2)",
        id,
        status,
        seconds=60,
    )


async def test_nothing_that_is_written_shows_the_secret(
    written: tuple[Installation, Path], tmp_path: Path
) -> None:
    house, file = written
    log, port = tmp_path / "output", free_port()
    settings = house.settings()
    assert settings.database_url is not None
    database = settings.database_url.get_secret_value()
    broker = settings.broker_url.get_secret_value() if settings.broker_url else None
    definitions = load_all(str(file))
    await register(house.session, definitions)
    from pydantic import SecretStr

    from penstock.client.client import Client

    keyed = house.settings(secrets_key=SecretStr(KEY))
    async with Client.connect(keyed) as client:
        await secrets.put(client.session, "public", "key", SECRET, by="ada")
    await house.executor(export_folder=tmp_path / "exports")
    with Fleet(
        database,
        broker,
        log,
        program=("-m", "penstock"),
        forked=False,
        secrets_key=KEY,
        modules=str(file),
        log_level="debug",
        port=port,
    ) as fleet:
        fleet.start("worker")
        for name in ("returned", "raised", "apart", "asking", "in_steps"):
            await plant(house, name, secrets={"key": "key"})
        marked = await house.client.start("leaky.marked", {"key": SECRET})
        await house.until(
            "select 1 from execution where id = $1 and finished_at is not null", marked, seconds=60
        )
        ids = [row["id"] for row in await house.rows("select id from execution")]
        await house.until("select 1 from log_line where line like '%thread%' or line like '%pieces%'")
        await letters(house)
        leaks = [f"{place}: {found}" async for place, found in in_tables(house, marked)]
        leaks += [f"{place}: {found}" async for place, found in in_answers(house, ids)]
        async with httpx.AsyncClient() as call:
            metrics = (await call.get(f"http://127.0.0.1:{port}/metrics")).text
        assert "leaky.returned" in metrics
        leaks += [f"metrics: {found}"] if (found := shows(metrics)) else []
    leaks += [f"output: {found}" for line in log.read_text().splitlines() if (found := shows(line))]
    for path in (tmp_path / "exports").rglob("*") if (tmp_path / "exports").exists() else ():
        leaks += (
            [f"export {path.name}"] if path.is_file() and shows(path.read_bytes().decode("latin-1")) else []
        )
    assert not leaks, "\n".join(leaks[:40])
    assert len(log.read_text()) > 1000


async def letters(house: Installation) -> None:
    """A dead letter of a trigger that is misspelt, with a key among its headers."""
    from penstock.language.terms.ids import new_id
    from penstock.store.outbox import dead_letters, queues
    from penstock.store.outbox.dead_letters import KeptLetter

    body = json.dumps({"key": SECRET}).encode()
    headers = json.dumps({"x-penstock-trigger": "leaky.caem", "authorization": f"Bearer {LINES[0]}"})
    kept = KeptLetter(queues.EVENT_RECEIVED, "NotFound", None, "a", body, headers, "f", id=new_id())
    async with house.session.transaction() as tx:
        await dead_letters.keep(tx, [kept])


async def in_tables(house: Installation, marked: Any) -> AsyncIterator[tuple[str, str]]:
    """Every table of the catalog, but for what the caller of `marked` gave."""
    for row in await house.rows(EVERY_TABLE):
        for (text,) in await house.rows(f'select t::text from "{row["name"]}" t'):
            if row["name"] in BY_DESIGN and (str(marked) in text or row["name"] == "dead_letter"):
                continue
            if found := shows(text):
                yield row["name"], found


async def in_answers(house: Installation, ids: list[Any]) -> AsyncIterator[tuple[str, str]]:
    """Return the answers of the API and of the pages, and the metrics."""
    backend = Backend.of(house.client)
    backend.settings = house.settings(api_access="open")
    app = make_app(backend)
    letter = (await house.rows("select id from dead_letter"))[0]["id"]
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as call:
        for path in {one.path for one in guarded(app) if one.method == "GET"}:
            for id in [*ids, letter] if "{id}" in path else ids[:1]:
                address = path.format(id=id, ref="leaky.returned", name="x")
                said = await call.get(
                    address,
                    params={"answered": True, "children": True, "seconds": 0.2},
                    headers={"last-event-id": "0"},
                )
                if found := shows(said.text):
                    yield address, found
    await backend.changes.close()
