"""A client without settings talks to the installation of its environment, or of its folder."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock import Client, SyncClient
from penstock.client.installation import find_installation
from penstock.errors import ConfigurationError, InvalidInput
from penstock.service import embedded
from penstock.store.schema import migrate


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PENSTOCK_DATABASE_URL", "PENSTOCK_BROKER_URL"):
        monkeypatch.delenv(name, raising=False)


async def test_a_client_joins_the_embedded_server_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / ".penstock"
    server = embedded.start(home)
    try:
        monkeypatch.chdir(tmp_path)
        await migrate.upgrade(await find_installation())
        async with Client.connect() as client:
            assert await client.schedules.all() == []
    finally:
        server.release()
        embedded.stop(home)


async def test_without_an_installation_it_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match="no database is named") as refused:
        async with Client.connect():
            pass
    assert "penstock dev" in str(refused.value.hint)


async def test_an_address_instead_of_settings_is_refused_with_a_hint() -> None:
    address: Any = "postgresql://somebody:secret@db.example/shop"
    for connect in (lambda: SyncClient.connect(address), lambda: asyncio.run(entered(address))):
        with pytest.raises(InvalidInput, match="with settings, and not with an address") as refused:
            await asyncio.to_thread(connect)
        assert "PENSTOCK_DATABASE_URL" in str(refused.value.hint)
        assert "secret" not in str(refused.value)


async def entered(address: Any) -> None:
    async with Client.connect(address):
        pass
