"""Every statement of the store fits the schema: PostgreSQL prepares it, and what stages messages hands them over."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator

import asyncpg

import penstock.store
from tests.house_rules import SQL

UTILITY = ("listen", "unlisten", "create", "set ")
"""What PostgreSQL does not prepare."""
ELSEWHERE = (
    "penstock.store.schema.migrate",
    "penstock.store.schema.functions",
    "penstock.store.schema.server_state",
)
"""Statements on what is not there yet, or on the server itself."""
TEMPLATE = re.compile(r"(?<!')\{\w*\}")
"""A statement that is made for a table when it is run."""
STAGING = """
select proname from pg_proc
where pronamespace = 'public'::regnamespace and ('message[]'::regtype = prorettype
    or 'message[]'::regtype = any (coalesce(proallargtypes, '{}')))
"""


def statements() -> Iterator[tuple[str, str]]:
    """Each with the place where it stands."""
    for found in pkgutil.walk_packages(penstock.store.__path__, "penstock.store."):
        if found.name in ELSEWHERE:
            continue
        module = importlib.import_module(found.name)
        texts = [value for value in vars(module).values() if isinstance(value, str)]
        for name, value in vars(module).items():
            if not isinstance(value, str) or name.startswith("__") or not SQL.match(value):
                continue
            if TEMPLATE.search(value) or any(value in text and value != text for text in texts):
                continue  # made elsewhere, or a part of another one
            yield f"{found.name}.{name}", value
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Call):
                for argument in node.args:
                    if isinstance(argument, ast.Constant) and SQL.match(str(argument.value)):
                        yield f"{found.name}:{argument.lineno}", str(argument.value)


async def test_every_statement_fits_and_staging_returns_messages(database: str) -> None:
    connection = await asyncpg.connect(database)
    wrong: list[str] = []
    seen = 0
    try:
        staging = {row["proname"] for row in await connection.fetch(STAGING)}
        for place, sql in statements():
            if sql.lstrip().lower().startswith(UTILITY):
                continue
            seen += 1
            try:
                prepared = await connection.prepare(sql)
            except asyncpg.PostgresError as error:
                wrong.append(f"{place}: {error}")
                continue
            columns = {attribute.name for attribute in prepared.get_attributes()}
            if any(f"{name}(" in sql for name in staging) and "messages" not in columns:
                wrong.append(f"{place}: it stages, and gives no column `messages`")
    finally:
        await connection.close()
    assert not wrong, "\n".join(wrong)
    assert seen > 150
