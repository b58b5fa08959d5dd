"""The types that one session has read are known to the next one, and are read again when they have changed."""

from __future__ import annotations

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.session import type_cache
from penstock.store.session.connecting import connect

READ = "select array[row(1, 'one')::named]"


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch, empty_database: str) -> list[frozenset[int]]:
    """Return the questions for types, in a database that has a type."""
    found: list[frozenset[int]] = []
    real = asyncpg.Connection._introspect_types  # type: ignore[attr-defined]

    async def noted(self: object, typeoids: set[int], timeout: float | None) -> object:
        found.append(frozenset(typeoids))
        return await real(self, typeoids, timeout)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", noted)
    monkeypatch.setattr(type_cache, "_types_of_servers", {})
    connection = await asyncpg.connect(empty_database)
    await connection.execute("create type named as (number integer, name text)")
    await connection.close()
    return found


async def read(database: str, sql: str = READ, *, prepared: bool = True) -> list[tuple[object, ...]]:
    settings = Settings(database_url=SecretStr(database), database_pooler=not prepared)
    connection = await connect(database, settings, role="test")
    try:
        return [tuple(one) for one in await connection.fetchval(sql)]
    finally:
        await connection.close()


@pytest.mark.parametrize("prepared", [True, False], ids=["its own session", "behind a pooler"])
async def test_the_next_session_knows_the_types_of_the_first(
    empty_database: str, asked: list[frozenset[int]], prepared: bool
) -> None:
    assert await read(empty_database, prepared=prepared) == [(1, "one")]
    assert len(asked) == 1
    assert await read(empty_database, prepared=prepared) == [(1, "one")]
    assert len(asked) == 1


async def test_types_read_long_ago_are_read_again(
    empty_database: str, asked: list[frozenset[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    await read(empty_database)
    monkeypatch.setattr(type_cache, "KNOWN_FOR", 0.0)
    await read(empty_database)
    assert len(asked) == 2


async def test_a_type_that_has_changed_is_seen_when_it_is_read_and_asked_for_again(
    empty_database: str, asked: list[frozenset[int]]
) -> None:
    await read(empty_database)
    connection = await asyncpg.connect(empty_database)
    await connection.execute("alter type named add attribute since date")
    await connection.close()
    now = "select array[row(1, 'one', null)::named]"
    with pytest.raises(asyncpg.OutdatedSchemaCacheError):
        await read(empty_database, now)
    assert await read(empty_database, now) == [(1, "one", None)]
    assert len(asked) == 2
