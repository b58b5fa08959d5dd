"""The moves: declared once, held by the database, drawn in the docs."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.errors import IllegalMove
from penstock.ids import new_id
from penstock.language import moves
from penstock.operate.why import READERS
from penstock.settings import Settings
from penstock.store.database import Database

SCRIPT = Path(__file__).parents[3] / "docs/lifecycle.py"
INSERT = "insert into execution (id, status, namespace_id, definition_id) values ($1, $2, 1, 1)"


@pytest.fixture(scope="module")
def lifecycle() -> ModuleType:
    spec = importlib.util.spec_from_file_location("lifecycle", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_on_the_life_of_an_execution_is_up_to_date(lifecycle: ModuleType) -> None:
    assert lifecycle.PAGE.read_text() == lifecycle.page(), "run: .venv/bin/python docs/lifecycle.py"


def test_every_status_says_what_it_means(lifecycle: ModuleType) -> None:
    unsaid = set(moves.STATUSES) - set(lifecycle.documented())
    assert not unsaid, "say it below the constant in common/penstock/language/moves.py"


def test_why_has_an_answer_for_every_status() -> None:
    assert set(READERS) == set(moves.STATUSES), (
        "READERS of common/penstock/operate/why/__init__.py has one for each"
    )


def test_every_status_can_be_reached_and_every_open_one_can_end() -> None:
    reached = {moves.REQUESTED}
    while more := {new for old in reached for new in moves.MOVES.get(old, ())} - reached:
        reached |= more
    assert reached == set(moves.STATUSES)
    for status, becomes in moves.MOVES.items():
        assert becomes & moves.FINAL, status


def test_nothing_follows_a_final_status() -> None:
    assert not moves.FINAL & set(moves.MOVES)
    assert not any(moves.is_legal(old, new) for old in moves.FINAL for new in moves.STATUSES)


async def test_the_database_makes_exactly_the_declared_moves(database: str) -> None:
    """Every pair of statuses is tried, on a row of its own."""
    home = await asyncpg.connect(database)
    try:
        for old in moves.STATUSES:
            for new in moves.STATUSES:
                if old == new:
                    continue
                id = new_id()
                await home.execute(INSERT, id, old)
                change = home.execute("update execution set status = $2 where id = $1", id, new)
                if moves.is_legal(old, new):
                    try:
                        await change
                    except asyncpg.PostgresError as error:
                        error.add_note(
                            "a migration has to insert it into legal_move: CONTRIBUTING.md, a move"
                        )
                        raise
                else:
                    with pytest.raises(asyncpg.PostgresError) as refused:
                        await change
                    assert refused.value.sqlstate == "PN001"
    finally:
        await home.close()


async def test_an_illegal_move_is_refused_by_name(database: str) -> None:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    session, id = home.session(), new_id()
    await session.fetch(INSERT, id, moves.COMPLETED)
    with pytest.raises(IllegalMove, match="completed -> running"):
        await session.fetch("update execution set status = 'running' where id = $1", id)
    await home.close()
