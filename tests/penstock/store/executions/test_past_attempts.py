"""The values that attempts leave to the next one, and the fate of an attempt without a worker."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

import orjson
import pytest
from pydantic import SecretStr

from penstock.language.terms.ids import new_id
from penstock.settings import Settings
from penstock.store.session.database import Database, Session


@pytest.fixture
async def session(database: str) -> AsyncIterator[Session]:
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    yield home.session()
    await home.close()


async def attempt(session: Session, id: UUID, number: int, outcome: str, error: str) -> None:
    await session.fetch(
        "insert into attempt (execution_id, attempt, outcome, error) values ($1, $2, $3, $4::text::jsonb)",
        *(id, number, outcome, error),
    )


async def carried(session: Session, id: UUID) -> object:
    [row] = await session.fetch("select carried_over($1) as carried", id)
    return row["carried"] and orjson.loads(row["carried"])


async def test_the_latest_deferred_or_answered_attempt_is_carried(
    session: Session,
) -> None:
    id, other = new_id(), new_id()
    assert await carried(session, id) is None
    await attempt(session, id, 1, "deferred", '{"carry": 1}')
    await attempt(session, other, 9, "deferred", '{"carry": 9}')
    assert await carried(session, id) == 1
    await attempt(session, id, 2, "waiting", '{"carry": {"answers": [2]}}')
    assert await carried(session, id) == {"answers": [2]}
    await attempt(session, id, 3, "failed", '{"carry": 3}')
    await attempt(session, id, 4, "lost", '{"type": "lost"}')
    await attempt(session, id, 5, "deferred", '{"type": "deferred"}')
    assert await carried(session, id) == {"answers": [2]}, (
        "one that carried nothing, or failed, leaves it as it was"
    )


@pytest.mark.parametrize(
    ("ends_as", "recoveries", "recovery", "becomes"),
    [
        (None, 0, None, "requested"),
        (None, 2, None, "requested"),
        (None, 3, None, "abandoned"),
        (None, 0, {"on_worker_loss": "rerun"}, "requested"),
        (None, 0, {"on_worker_loss": "fail"}, "failed"),
        (None, 9, {"on_worker_loss": "fail"}, "failed"),
        (None, 0, {"max_recoveries": 0}, "abandoned"),
        (None, 4, {"max_recoveries": 5}, "requested"),
        ("cancelled", 0, None, "cancelled"),
        ("timeout", 9, {"on_worker_loss": "fail"}, "timeout"),
    ],
)
async def test_the_recovery_of_the_action_decides_after_a_loss(
    session: Session, ends_as: str | None, recoveries: int, recovery: dict[str, object] | None, becomes: str
) -> None:
    said = None if recovery is None else orjson.dumps(recovery).decode()
    [row] = await session.fetch(
        "select after_loss($1, $2, $3::text::jsonb) as becomes", ends_as, recoveries, said
    )
    assert row["becomes"] == becomes


async def test_a_requested_end_holds_unless_the_execution_completed(
    session: Session,
) -> None:
    expected = {
        ("running", None, "failed"): "failed",
        ("running", None, "requested"): "requested",
        ("canceling", None, "requested"): "requested",
        ("canceling", "cancelled", "completed"): "completed",
        ("running", "cancelled", "completed"): "completed",
        ("running", "cancelled", "failed"): "cancelled",
        ("canceling", "timeout", "failed"): "timeout",
        ("canceling", "timeout", "requested"): "timeout",
        ("canceling", "timeout", "waiting"): "timeout",
        ("running", "timeout", "requested"): "requested",
        ("running", "timeout", "waiting"): "waiting",
    }
    rows = await session.fetch(
        "select ended_status(was, asked, status) as said from unnest($1::text[], $2::text[], $3::text[]) x (was, asked, status)",
        *(list(column) for column in zip(*expected, strict=True)),
    )
    assert [row["said"] for row in rows] == list(expected.values())
