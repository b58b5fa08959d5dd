"""The table is whole, and rows of it run. `make parity` runs all of them."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.parity.rows import ROWS
from tests.parity.site import Site

FOLDER = Path(__file__).parent
PARTS_OF_THE_TABLE = {"A": 14, "S": 8, "T": 12, "C": 9, "D": 5}
PUBLIC = ("penstock", "penstock.run")
"""What users import. Nothing else of Penstock is asked by a row."""


def test_there_is_a_function_for_each_of_the_48_rows() -> None:
    wanted = [
        f"{part}{number}" for part, count in PARTS_OF_THE_TABLE.items() for number in range(1, count + 1)
    ]
    assert [row.name for row in ROWS] == wanted
    assert [row.name for row in ROWS if not row.says] == []


def test_rows_reach_in_nowhere() -> None:
    for file in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            inside = [
                name
                for name in names
                if name.startswith("penstock") and name != PUBLIC[0] and not name.startswith(f"{PUBLIC[1]}.")
            ]
            assert not inside, f"{file.name} imports {inside}"


async def test_a_command_and_the_client_see_the_same(database: str, vhost: str, tmp_path: Path) -> None:
    async with Site(database, vhost, tmp_path) as site:
        await site.apply("from penstock import Trigger\nTrigger('parity.ticked')\n", "ticks.py")
        id = (await site.command("publish", "parity.ticked", "n=1", "--key", "one", "--json")).one["id"]
        assert str(await site.client.publish("parity.ticked", {"n": 1}, key="one")) == id
        assert await site.refused("insert into event_key select * from event_key") == "UniqueViolationError"
