"""Workers that are scaled to none are woken by what waits for them: the chart's queries, asked as KEDA asks them."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import pytest

from penstock import Limit, action
from penstock_executor.loops import measure_work
from tests.deploy.chart import of_kind, rendered
from tests.flows.installation import Installation
from tests.servers.process import free_port
from tests.servers.prometheus import Prometheus, prometheus


@action(pack="shop")
async def plain(n: int) -> int:
    return n


@action(pack="shop", limits=[Limit(1)])
async def limited(n: int) -> int:
    """Work that no live worker runs stands in line where it has a limit, and on its route where it has none."""
    return n


@action(pack="shop", route="gpu")
async def train(n: int) -> int:
    return n


GROUPS = ("workers.default.scale.by=work", "workers.gpu.routes={gpu}", "workers.gpu.scale.by=work")


@cache
def triggers() -> dict[str, list[dict[str, Any]]]:
    """By group of workers."""
    scaled = of_kind(rendered(*(word for value in GROUPS for word in ("--set", value))), "ScaledObject")
    return {
        scaler["metadata"]["name"].removeprefix("penstock-worker-"): scaler["spec"]["triggers"]
        for scaler in scaled
    }


class Keda:
    """The view of KEDA of a group of workers: the values of its triggers."""

    def __init__(self, server: Prometheus, group: str) -> None:
        self._server = server
        self._triggers = [trigger["metadata"] for trigger in triggers()[group]]

    async def values(self) -> list[float | None]:
        return [await self._server.ask(trigger["query"]) for trigger in self._triggers]

    async def active(self) -> bool | None:
        """Return true if there shall be workers, and None if it is not known and they stay as many as they are."""
        pairs = list(zip(await self.values(), self._triggers, strict=True))
        if any(
            value is not None and value > float(trigger["activationThreshold"]) for value, trigger in pairs
        ):
            return True
        return None if any(value is None for value, _ in pairs) else False

    async def wanted(self) -> int:
        """Workers for what waits and what runs."""
        waits = (await self.values())[0]
        assert waits is not None
        return math.ceil(waits / float(self._triggers[0]["threshold"]))

    async def until(self, expected: bool | None) -> None:
        try:
            async with asyncio.timeout(60):
                while await self.active() is not expected:
                    await asyncio.sleep(0.2)
        except TimeoutError as error:
            raise TimeoutError(f"the triggers give {await self.values()}") from error


@pytest.fixture(autouse=True)
def measured_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure_work, "EVERY", 0.2)


@asynccontextmanager
async def scraped(house: Installation) -> AsyncIterator[tuple[Keda, Keda, Any]]:
    """An executor without any worker, and what KEDA sees of two groups of them."""
    port = free_port()
    await house.apply(plain, limited, train)
    executor = await house.executor(port=port)
    async with prometheus(port) as server:
        yield Keda(server, "default"), Keda(server, "gpu"), executor


@pytest.mark.parametrize("waits", [plain, limited])
async def test_waiting_work_wakes_its_workers_and_lets_them_go(house: Installation, waits: Any) -> None:
    async with scraped(house) as (default, gpu, _):
        await default.until(False)
        ids = await house.client.start_many(waits.ref, [{"n": n} for n in range(40)])
        await default.until(True)
        assert await gpu.active() is False, "another route's work wakes nobody"
        async with asyncio.timeout(60):
            while await default.wanted() < 2:  # 40 executions, 32 a worker
                await asyncio.sleep(0.2)
        worker = await house.worker(plain, limited)
        for id in ids:
            await house.client.result(id)
        await default.until(False)
        await house.ended(worker)
        await default.until(False)
        await house.client.start(waits.ref, {"n": 1})
        await default.until(True)


async def test_a_route_wakes_the_workers_that_serve_it_and_no_others(house: Installation) -> None:
    async with scraped(house) as (default, gpu, _):
        await house.client.start("shop.train", {"n": 1})
        await gpu.until(True)
        assert await default.active() is False


async def test_without_executors_no_worker_is_scaled_down(house: Installation) -> None:
    async with scraped(house) as (default, _, executor):
        await default.until(False)
        await house.ended(executor)
        await default.until(None)
