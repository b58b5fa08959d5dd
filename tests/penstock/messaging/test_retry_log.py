"""Why a batch is tried again is said, and not each time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from penstock.errors import ConnectionFailed
from penstock.messaging import retry_log
from penstock.messaging.retry_log import RetryLog


@pytest.fixture
def said() -> Iterator[list[dict[str, object]]]:
    with capture_logs() as lines:
        yield lines  # type: ignore[misc]


def test_the_reason_is_said_once_for_each_kind(said: list[dict[str, object]]) -> None:
    told = RetryLog("event.created")
    for _ in range(769):
        told.add(TimeoutError("the lock was not to be had"))
    told.add(ConnectionFailed("PostgreSQL does not answer"))
    assert [line["reason"] for line in said] == [
        "TimeoutError: the lock was not to be had",
        "ConnectionFailed: PostgreSQL does not answer",
    ]


def test_the_next_line_says_how_often_it_happened_meanwhile(
    said: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = RetryLog("event.created")
    for _ in range(5):
        told.add(TimeoutError())
    monkeypatch.setattr(retry_log, "PAUSE", 0.0)
    told.add(TimeoutError())
    assert [line["times"] for line in said] == [1, 5]
