"""Cases of the conformance program that are played again, since their worker has handed an attempt back."""

from __future__ import annotations

from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from penstock.testing.worker_conformance import play
from penstock.testing.worker_conformance.cases import CASES
from penstock.testing.worker_conformance.surroundings import HandedBack


async def fault_of(monkeypatch: pytest.MonkeyPatch, *outcomes: Exception | None) -> tuple[str | None, Any]:
    """Play a case with these outcomes, one for each time. Return its fault, and its surroundings."""
    monkeypatch.setitem(CASES, "odd", AsyncMock(side_effect=outcomes))
    house: Any = Mock(only_worker=AsyncMock(), end_workers=AsyncMock())
    return await play.fault_in(house, "odd"), house


async def test_case_is_played_again_with_another_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    fault, house = await fault_of(monkeypatch, HandedBack("attempt 1 was handed back"), None)
    assert fault is None
    assert house.end_workers.await_count == 1


async def test_worker_that_always_hands_back_does_not_conform(monkeypatch: pytest.MonkeyPatch) -> None:
    fault, _ = await fault_of(monkeypatch, *[HandedBack("attempt 1 was handed back")] * play.TRIES)
    assert fault == "attempt 1 was handed back"


async def test_fault_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fault, house = await fault_of(monkeypatch, AssertionError("the result is 3"))
    assert fault == "the result is 3"
    assert house.proxy.clear.called
