"""The heartbeats of a worker that calls a gateway: none for a short attempt, and one in time for a longer one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID, uuid4

from penstock.messaging.supervision import Supervisor
from penstock_worker.gateway.gateway_heartbeat import Answer, GatewayHeartbeat
from penstock_worker.gateway.gateway_session import GatewaySession
from tests.penstock_worker.gateway.stub_gateway import StubGateway, stub_gateway


@asynccontextmanager
async def beating(
    held: dict[UUID, int], beat_every: float
) -> AsyncIterator[tuple[StubGateway, GatewayHeartbeat]]:
    """Run the heartbeat of a worker with a take that waits. `held` are its attempts."""

    def beat(message: dict[str, object]) -> dict[str, object]:
        time.sleep(min(0.3, float(str(message["wait"]))))
        return {"lost": [], "cancel": [], "drain": False}

    looked = threading.Event()

    def is_taking() -> bool:
        looked.set()
        return True

    def ignore(*_: Answer | float | GatewaySession) -> None: ...

    with stub_gateway(beat=beat) as stub:
        heartbeat = GatewayHeartbeat(
            [stub.address],
            "token",
            GatewaySession(uuid4(), "secret", beat_every, 8 * beat_every, 20.0, 1000),
            Supervisor(),
            holding=held.copy,
            is_cordoned=lambda: False,
            is_taking=is_taking,
            answer=ignore,
            silent=ignore,
            unknown=ignore,
        )
        heartbeat.start()
        assert await asyncio.to_thread(looked.wait, 10)  # it has looked, and held nothing
        await asyncio.sleep(0.05)
        try:
            yield stub, heartbeat
        finally:
            await heartbeat.stop()


async def test_short_attempts_send_one_beat_an_interval() -> None:
    async with beating({}, 1.0) as (stub, heartbeat):
        began = time.monotonic()
        while time.monotonic() < began + 3.5:
            heartbeat.note_taken()  # the attempt has ended before a heartbeat can name it
            await asyncio.sleep(0.05)
        assert 2 <= len(stub.messages("beat")) <= 4


async def test_long_attempt_is_named_by_a_beat_soon() -> None:
    held: dict[UUID, int] = {}
    async with beating(held, 30.0) as (stub, heartbeat):
        id = uuid4()
        held[id] = 1
        heartbeat.note_taken()
        await asyncio.sleep(0.05)
        assert stub.messages("beat") == []
        await asyncio.sleep(0.7)
        assert stub.messages("beat")[0]["holding"] == [
            {"execution": str(id), "attempt": 1, "cancelling": False}
        ]
