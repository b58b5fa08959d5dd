"""Notifications that a process sends after its commit, beside the messages that have rows."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from penstock import Settings
from penstock.messaging.outbox import Publisher
from penstock.store.session import notifications
from penstock.store.session.database import Database
from penstock.store.session.staged_messages import StagedMessage
from tests.interleavings.broker import Silent


class NoDatabase:
    """A database that no test here asks."""

    def session(self) -> SimpleNamespace:
        return SimpleNamespace(settings=Settings())


async def test_assignments_of_one_moment_need_two_notifications(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A worker that is told to look finds all that was committed before. So what comes while it is told needs one more."""
    sent: list[str] = []
    may_end = asyncio.Event()

    async def notify(_session: Any, channel: str, _text: str) -> None:
        sent.append(channel)
        await may_end.wait()

    monkeypatch.setattr(notifications, "notify", notify)
    publisher = Publisher(Silent(), cast(Database, NoDatabase()))
    one, other = (f"assigned.{UUID(int=n)}" for n in (1, 2))
    for _ in range(20):
        for channel in (one, other):
            publisher.publish([StagedMessage(0, channel, [])])
        await asyncio.sleep(0)
    for _ in range(200):  # until the tasks of all messages have begun, in whatever order they do
        await asyncio.sleep(0)
    assert sorted(sent) == [one, other]
    may_end.set()
    await publisher.flush()
    assert sorted(sent) == [one, one, other, other]
    publisher.publish([StagedMessage(0, one, [])])
    await publisher.flush()
    assert (len(sent), sent[-1]) == (5, one)
