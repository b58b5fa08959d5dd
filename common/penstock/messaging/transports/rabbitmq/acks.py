"""The acks for deliveries of a channel: as few as possible that settle exactly some of them."""

from __future__ import annotations

from collections.abc import Iterable, Set


def acks(open_tags: Iterable[int], settled: Set[int]) -> list[tuple[int, bool]]:
    """Return (delivery tag, multiple) for each ack to send. `open_tags` is in the order of delivery.

    One `multiple` ack covers all deliveries before the first open one; the others get single acks. Acks are half of
    the cost of consuming, and in the usual case, a batch that is settled as a whole, one is enough.
    """
    plan: list[tuple[int, bool]] = []
    oldest: int | None = None
    gap = False
    remaining = len(settled)
    for tag in open_tags:
        if remaining == 0:
            break
        if tag not in settled:
            gap = True
            continue
        remaining -= 1
        if gap:
            plan.append((tag, False))
        else:
            oldest = tag
    return plan if oldest is None else [(oldest, True), *plan]
