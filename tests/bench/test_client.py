from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bench.client import SystemModule, obey


def system(*orders: Any, **more: Any) -> SystemModule:
    return cast(
        SystemModule, SimpleNamespace(VERSION="1", PROCESSES={}, RECORDED=None, ORDERS=orders, **more)
    )


async def test_a_task_named_like_an_order_is_not_an_order() -> None:
    async def send(index: int) -> None: ...
    async def spread(index: int, count: int) -> None:
        """A task of the system's, say."""

    described = cast(dict[str, Any], await obey(system(send, spread=spread), "describe", {}))
    assert described["orders"] == ["send", "pace", "callers"]


async def test_an_unknown_order_is_refused() -> None:
    async def sent(index: int) -> None: ...

    with pytest.raises(TypeError, match="sent"):
        await obey(system(sent), "describe", {})


async def test_callers_wait_for_their_own_and_each_index_is_sent_once() -> None:
    under_way, most, indexes = 0, 0, []

    async def result(index: int) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0)
        indexes.append(index)
        under_way -= 1

    seconds = cast(list[float], await obey(system(result), "results", {"first": 7, "count": 250}))
    assert most == 100
    assert sorted(indexes) == [*range(7, 257)]
    assert len(seconds) == 250


async def test_a_pace_of_chains_gives_each_its_own_indexes() -> None:
    calls = []

    async def chain(first: int, count: int) -> None:
        calls.append((first, count))

    paced = {"call": "chain", "first": 20, "count": 3, "rate": 1000.0, "steps": 10}
    instants = cast(dict[str, list[float]], await obey(system(chain), "pace", paced))
    assert calls == [(20, 10), (30, 10), (40, 10)]
    assert all(done >= sent for sent, done in zip(instants["sent"], instants["done"], strict=True))
