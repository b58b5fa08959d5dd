"""The row of a process that registers again: after its connection was lost, and after it was taken for dead."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from penstock.language.moves import processes
from penstock.language.terms.ids import new_id
from penstock.settings import Settings
from penstock.store.processes import heartbeats
from penstock.store.processes.heartbeats import Identity
from penstock.store.session.database import Database, Session


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield home.session()
    await home.close()


@pytest.mark.parametrize("state", [processes.ACTIVE, processes.CORDONED, processes.DRAINING])
async def test_a_process_that_registers_again_keeps_its_state(session: Session, state: str) -> None:
    me = Identity(new_id(), "worker", "one")
    await heartbeats.register(session, me, None)
    await heartbeats.set_state(session, me.id, state)
    await heartbeats.register(session, me, None)
    [row] = await session.fetch("select state from process")
    assert row["state"] == state


async def test_a_process_taken_for_dead_is_active_once_registered(session: Session) -> None:
    me = Identity(new_id(), "worker", "one")
    await heartbeats.register(session, me, None)
    await heartbeats.set_state(session, me.id, processes.DEAD)
    await heartbeats.set_state(session, me.id, processes.DRAINING)
    [row] = await session.fetch("select state from process")
    assert row["state"] == processes.DEAD, "what is dead says nothing"
    await heartbeats.register(session, me, None)
    [row] = await session.fetch("select state from process")
    assert row["state"] == processes.ACTIVE
