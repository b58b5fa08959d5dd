"""How the tables of a database differ from those declared in `tables`."""

from __future__ import annotations

from typing import Any

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection

from penstock.settings import Settings
from penstock.store.migrate import with_connection
from tests.penstock.store.tables import METADATA


async def difference(settings: Settings) -> list[Any]:
    """Empty when they agree."""
    found: list[Any] = []

    def run(connection: Connection) -> None:
        context = MigrationContext.configure(
            connection, opts={"include_object": _declared_or_ours, "version_table": "penstock_migration"}
        )
        found.extend(compare_metadata(context, METADATA))

    await with_connection(settings, run)
    return found


def _declared_or_ours(thing: Any, name: str | None, kind: str, reflected: bool, _other: Any) -> bool:
    """Partitions and the table of migrations are in the database alone."""
    table = str(name if kind == "table" else getattr(getattr(thing, "table", None), "name", ""))
    last = table.rsplit("_", 1)[-1]
    return not reflected or not (last in {"default", "migration"} or last.isdigit())
