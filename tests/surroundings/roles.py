"""A role that may create nothing but its own tables, in a database with settings that an administrator chose."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import asyncpg

from tests.servers import databases

LISTS = ("search_path", "DateStyle")
"""Settings that are lists. Quotes around the whole would make one name of a list."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """The address of a database for a role that neither may create schemas nor owns the schema, and a superuser's connection."""

    address: str
    role: str
    control: asyncpg.Connection[Any]

    @property
    def database(self) -> str:
        return urlsplit(self.address).path.lstrip("/")


@asynccontextmanager
async def tenant(database: str, schema: str, settings: Mapping[str, str]) -> AsyncIterator[Tenant]:
    """Make the role and the schema in this empty database. Sessions of both the role and the database begin with `settings`."""
    role, address = databases.new_name(), urlsplit(database)
    name = address.path.lstrip("/")
    control = await asyncpg.connect(database)
    await control.execute(
        f"create role {role} login password 'secret'; revoke create, temporary on database {name} from public;"
        f'create schema if not exists "{schema}"; grant usage, create on schema "{schema}" to {role}'
    )
    for setting, value in settings.items():
        text = (value or "''") if setting in LISTS else f"'{value}'"
        for target in (f"role {role} in database {name}", f"database {name}"):
            await control.execute(f"alter {target} set {setting} = {text}")
    try:
        yield Tenant(
            address._replace(netloc=f"{role}:secret@{address.netloc.rpartition('@')[2]}").geturl(),
            role,
            control,
        )
    finally:
        await control.fetch("select pg_terminate_backend(pid) from pg_stat_activity where usename = $1", role)
        await control.execute(f"drop owned by {role} cascade; drop role {role}")
        await control.close()
