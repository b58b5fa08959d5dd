"""Roles of services are made, printed and renewed, and `doctor` says which of them has too much."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.operate import roles
from penstock.operate.doctor import roles as doctor
from penstock.settings import Settings
from penstock.store.schema import grants, migrate
from penstock.store.schema.rights import SERVICES
from penstock.store.session.database import Database
from tests.servers.databases import as_service


@pytest.fixture
async def owner(database: str) -> AsyncIterator[asyncpg.Connection[asyncpg.Record]]:
    connection = await asyncpg.connect(database)
    yield connection
    await connection.close()


async def test_doctor_names_rights_that_a_service_does_not_need(
    database: str, owner: asyncpg.Connection[asyncpg.Record]
) -> None:
    made = Database(Settings(database_url=SecretStr(database)), role="doctor")
    try:
        assert [one.state for one in await doctor.findings(made.session())] == ["ok"]
        role = as_service(database, "worker").partition("//")[2].partition(":")[0]
        await owner.execute(f"grant select on api_token, person to {role}")
        [found] = await doctor.findings(made.session())
        assert found.state == "warning"
        assert "select on api_token, select on person" in found.says
        worker = await asyncpg.connect(database, server_settings={"application_name": "worker:one"})
        both = await doctor.findings(made.session())
        assert any("worker connects as" in one.says for one in both)
        await worker.close()
    finally:
        await owner.execute(f"revoke select on api_token, person from {role}")
        await made.close()


async def test_roles_are_made_printed_and_renewed(empty_database: str) -> None:
    settings = Settings(database_url=SecretStr(empty_database), database_schema="blue")
    await migrate.upgrade(settings)
    made = Database(settings, role="roles")
    prefix = empty_database.rpartition("/")[2]
    wanted = roles.named(prefix)
    owner = await asyncpg.connect(empty_database)
    try:
        first = await roles.apply(made.session(), settings, wanted)
        assert [one.service for one in first] == list(SERVICES)
        again = await roles.apply(made.session(), settings, wanted)
        assert {one.address for one in again} == {None}
        [address] = [one.address for one in first if one.service == "worker"]
        assert address is not None
        worker = await asyncpg.connect(address)
        await worker.fetch("select from blue.execution")
        await owner.execute("revoke all on blue.execution from " + wanted["worker"])
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await worker.fetch("select from blue.execution")
        # As after an update: a function is another, and all rights are given anew.
        await owner.execute("update blue.penstock_function set digest = '' where name = 'stage'")
        await migrate.upgrade(settings)
        await worker.fetch("select from blue.execution")
        await owner.execute("revoke all on blue.execution from " + wanted["worker"])
        await owner.execute("\n".join(grants.script("blue", wanted)))
        await worker.fetch("select from blue.execution")
        await worker.close()
        assert await grants.excess(made.session(), "worker", wanted["worker"]) == []
    finally:
        await made.close()
        for role in wanted.values():
            await owner.execute(f"drop owned by {role}; drop role {role}")
        await owner.close()
