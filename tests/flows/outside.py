"""Actions that wait for something outside, and those that programs call the API from."""

from __future__ import annotations

from typing import Any

from penstock import Later, RetryPolicy, Trigger, action, current, later

called = Trigger("outside.called")


@action(pack="outside")
async def waits(id: str | None = None, timeout: float | None = None, heartbeat: float | None = None) -> Later:
    address = await current().callback()
    await current().publish("outside.called", {"address": address}, transactional=True)
    return later(id, timeout=timeout, heartbeat=heartbeat)


@action(pack="outside", executor="process")
def waits_in_process() -> Any:
    current().sync.publish("outside.called", {"address": current().sync.callback()})
    return later()


@action(pack="outside", retry=RetryPolicy(max_attempts=2, initial_delay=0.0))
async def waits_twice() -> Later:
    await current().publish(
        "outside.called", {"address": await current().callback(), "attempt": current().attempt}
    )
    return later(f"build-{current().attempt}")


@action(pack="outside", retry=RetryPolicy(max_attempts=2, initial_delay=0.0))
async def waits_for_order(order: int) -> Later:
    return later(f"order:{order}")


@action(pack="outside")
async def waits_with(password: str) -> Later:
    await current().publish("outside.called", {"address": await current().callback()})
    return later("with a secret")


@action(pack="outside")
async def is_slow(seconds: float) -> Later:
    import asyncio

    await current().publish("outside.called", {"address": await current().callback()})
    await asyncio.sleep(seconds)
    return later("slow")


ALL = [called, waits, waits_in_process, waits_twice, waits_for_order, waits_with, is_slow]
