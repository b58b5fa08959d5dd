"""The open deliveries of a channel, and the fewest acks that settle exactly some of them."""

from __future__ import annotations

from collections.abc import Iterable, Set


def acks(open_tags: Iterable[int], settled: Set[int]) -> list[tuple[int, bool]]:
    """(delivery tag, multiple) for each ack to send. `open_tags` is in the order of delivery.

    One `multiple` ack reaches as far as nothing older is still open; the rest goes one by one. Half of what
    consuming costs is acks, and in the ordinary case, a batch settled whole, this is a single one.
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
