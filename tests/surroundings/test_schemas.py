"""Schemas that a role did not make, may not make, or that have names PostgreSQL spells otherwise."""

from __future__ import annotations

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.errors import ConfigurationError
from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.surroundings import play
from tests.surroundings.roles import tenant


async def test_nothing_to_do_needs_no_right_to_create_schemas(empty_database: str) -> None:
    async with tenant(empty_database, "mine", {}) as it:
        settings = Settings(database_url=SecretStr(it.address), database_schema="mine")
        first = await migrate.upgrade(settings)
        await it.control.execute('revoke create on schema "mine" from public, ' + it.role)
        assert await migrate.upgrade(settings) == first


async def test_schema_that_may_not_be_created_is_named(empty_database: str) -> None:
    async with tenant(empty_database, "mine", {}) as it:
        settings = Settings(database_url=SecretStr(it.address), database_schema="Other")
        with pytest.raises(
            ConfigurationError, match="the schema Other does not exist, and this role may not"
        ):
            await migrate.upgrade(settings)


async def test_role_without_rights_receives_the_error_of_postgresql(empty_database: str) -> None:
    async with tenant(empty_database, "mine", {}) as it:
        await it.control.execute('revoke create on schema "mine" from public, ' + it.role)
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied for schema mine"):
            await migrate.upgrade(Settings(database_url=SecretStr(it.address), database_schema="mine"))


@pytest.mark.parametrize("name", ["pg_mine", "ä" * 40])
def test_schema_name_that_postgresql_refuses_is_refused_at_start(name: str) -> None:
    with pytest.raises(ValueError, match="PostgreSQL"):
        Settings(database_schema=name)


@pytest.mark.either_transport
@pytest.mark.parametrize("schema", ["Jobs", "a.b"])
async def test_flow_runs_in_a_schema_spelled_as_it_is(
    empty_database: str, broker: str | None, schema: str
) -> None:
    await play.through(empty_database, broker, {}, schema=schema)
