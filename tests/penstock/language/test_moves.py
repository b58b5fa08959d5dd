"""The moves: declared once, held by the database, drawn in the docs."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path
from types import ModuleType
from typing import get_args

import asyncpg
import pytest
from pydantic import SecretStr

from penstock.engine.state import Phase
from penstock.errors import IllegalMove
from penstock.language import moves
from penstock.language.moves import executions
from penstock.language.terms.ids import new_id
from penstock.operate.why import READERS
from penstock.settings import Settings
from penstock.store.session.database import Database

SCRIPT = Path(__file__).parents[3] / "docs/lifecycle.py"
INSERT = "insert into execution (id, status, namespace_id, definition_id) values ($1, $2, 1, 1)"
WRITTEN = {
    "execution": (INSERT, "update execution set status = $2 where id = $1"),
    "enforcement": (
        "insert into enforcement (event_id, execution_id, status, rule, definition_id) values ($1, $1, $2, 'shop.rule', 1)",
        "update enforcement set status = $2 where execution_id = $1",
    ),
    "fire": (
        "insert into fire (execution_id, status, schedule, due_at, kind, definition_id)"
        " values ($1, $2, $1::uuid::text, now(), 'due', 1)",
        "update fire set status = $2 where schedule = $1::uuid::text",
    ),
    "inquiry": (
        "insert into inquiry (execution_id, status, prompt) values ($1, $2, 'Ship it?')",
        "update inquiry set status = $2 where execution_id = $1",
    ),
    "process": (
        "insert into process (id, state, kind, name) values ($1, $2, 'worker', 'a')",
        "update process set state = $2 where id = $1",
    ),
    "workflow": (
        "insert into workflow (execution_id, head, definition_id, tenant)"
        " values ($1, jsonb_build_object('phase', $2::text), 1, 'public')",
        "update workflow set head = jsonb_build_object('phase', $2::text) where execution_id = $1",
    ),
}
"""Of each subject, how a row with a status is made and how it moves."""


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


@pytest.mark.parametrize("subject", moves.SUBJECTS)
def test_every_status_is_documented(lifecycle: ModuleType, subject: str) -> None:
    module = lifecycle.OTHERS[subject][1] if subject != "execution" else executions
    unsaid = set(moves.statuses(subject)) - set(lifecycle.documented(module))
    assert not unsaid, f"say it below the constant in {module.__file__}"


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


def test_the_phases_of_a_workflow_are_those_of_the_engine() -> None:
    assert set(get_args(Phase)) == set(moves.statuses("workflow"))


@pytest.mark.parametrize("subject", moves.SUBJECTS)
async def test_the_database_makes_exactly_the_declared_moves(database: str, subject: str) -> None:
    """Every pair of statuses is tried, on a row of its own."""
    insert, update = WRITTEN[subject]
    home = await asyncpg.connect(database)
    try:
        for old, new in itertools.permutations(moves.statuses(subject), 2):
            id = new_id()
            await home.execute(insert, id, old)
            change = home.execute(update, id, new)
            if new in moves.SUBJECTS[subject].get(old, ()):
                try:
                    await change
                except asyncpg.PostgresError as error:
                    error.add_note("a migration has to insert it into legal_move: CONTRIBUTING.md, a move")
                    raise
            else:
                with pytest.raises(asyncpg.PostgresError, match=f"{id}.*: {old} -> {new}") as refused:
                    await change
                assert refused.value.sqlstate == "PN001"
    finally:
        await home.close()


@pytest.mark.parametrize("subject", moves.SUBJECTS)
async def test_an_unchanged_status_is_not_a_move(database: str, subject: str) -> None:
    insert, update = WRITTEN[subject]
    home = await asyncpg.connect(database)
    try:
        for status in moves.statuses(subject):
            id = new_id()
            await home.execute(insert, id, status)
            assert await home.execute(update, id, status) == "UPDATE 1"
    finally:
        await home.close()


async def test_a_workflow_begins_in_any_phase_and_never_forgets_how_far_it_is(database: str) -> None:
    home = await asyncpg.connect(database)
    insert, update = WRITTEN["workflow"]
    try:
        for phase in moves.statuses("workflow"):
            id = new_id()
            await home.execute(insert, id, phase)
            with pytest.raises(asyncpg.PostgresError, match=f"{phase} -> nothing"):
                await home.execute("update workflow set head = null where execution_id = $1", id)
            other = new_id()
            await home.execute(
                "insert into workflow (execution_id, definition_id, tenant) values ($1, 1, 'public')", other
            )
            assert await home.execute(update, other, phase) == "UPDATE 1"
    finally:
        await home.close()


async def test_an_illegal_move_is_refused_by_name(database: str) -> None:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    session, id = home.session(), new_id()
    await session.fetch(INSERT, id, moves.COMPLETED)
    with pytest.raises(IllegalMove, match="completed -> running"):
        await session.fetch("update execution set status = 'running' where id = $1", id)
    await home.close()
