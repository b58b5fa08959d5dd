"""The reason for which a batch is tried again is logged, and not each time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import ConnectionFailed
from penstock.messaging import retry_log
from penstock.messaging.retry_log import RetryLog


class Log:
    """The log lines, whatever level other tests have set."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def warning(self, event: str, **said: Any) -> None:
        self.lines.append({"event": event, **said})


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    log = Log()
    monkeypatch.setattr(retry_log, "log", log)
    return log.lines


def test_the_reason_is_said_once_for_each_kind(said: list[dict[str, Any]]) -> None:
    told = RetryLog("event.created")
    for _ in range(769):
        told.add(TimeoutError("the lock was not to be had"))
    told.add(ConnectionFailed("PostgreSQL does not answer"))
    assert [line["reason"] for line in said] == [
        "TimeoutError: the lock was not to be had",
        "ConnectionFailed: PostgreSQL does not answer",
    ]


def test_the_next_line_says_how_often_it_happened_meanwhile(
    said: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    told = RetryLog("event.created")
    for _ in range(5):
        told.add(TimeoutError())
    monkeypatch.setattr(retry_log, "PAUSE", 0.0)
    told.add(TimeoutError())
    assert [line["times"] for line in said] == [1, 5]
