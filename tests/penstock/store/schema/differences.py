"""The differences between the tables of a database and those declared in `tables`."""

from __future__ import annotations

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from penstock.settings import Settings
from penstock.store.schema.migrate import VERSIONS, locked_connection
from tests.penstock.store.tables import METADATA


async def difference(settings: Settings) -> list[Any]:
    """Empty when they agree."""

    def run(connection: Connection) -> list[Any]:
        context = MigrationContext.configure(
            connection, opts={"include_object": _declared_or_ours, "version_table": VERSIONS}
        )
        return list(compare_metadata(context, METADATA))

    async with locked_connection(settings) as connection:
        return await connection.run_sync(run)


def _declared_or_ours(thing: Any, name: str | None, kind: str, reflected: bool, _other: Any) -> bool:
    """Partitions and the tables of migrations are in the database alone."""
    table = str(name if kind == "table" else getattr(getattr(thing, "table", None), "name", ""))
    last = table.rsplit("_", 1)[-1]
    return not reflected or not (
        table in {VERSIONS, "penstock_function"} or last == "default" or last.isdigit()
    )
