"""The rule by which refusals count against the channel on which they came, and not against the queue.

A channel may be opened between the death of a queue's leader and the election of the next one. It refuses every message for
that queue as long as it lives, though the queue is well. With 3.10.8, three of 40 channels opened around a kill did so. Other
channels are not concerned, so a publisher that is refused opens another one. But a queue may be full, or without a leader for
long, and closing a channel loses the pending confirmations of other queues. So each next replacement comes later.
"""

from __future__ import annotations

import time
from collections.abc import Collection

SOON = 1.0
"""Seconds until a queue that goes on refusing counts against the channel for the second time, doubled each time."""
LATEST = 300.0
"""Seconds that it waits at the most."""


class Refusals:
    def __init__(self) -> None:
        self._waits: dict[str, tuple[float, float]] = {}
        """Of each queue that refuses: from when on it counts again, and how long it waits after that."""

    def __bool__(self) -> bool:
        return bool(self._waits)

    def over(self, queues: Collection[str]) -> None:
        """These take messages."""
        for queue in queues:
            self._waits.pop(queue, None)

    def count(self, queues: Collection[str]) -> bool:
        """These refuse, or say nothing. Whether the channel is to be given up for it."""
        now, counts = time.monotonic(), False
        for queue in queues:
            at, wait = self._waits.get(queue, (now, SOON))
            if now >= at:
                self._waits[queue] = now + wait, min(2 * wait, LATEST)
                counts = True
        return counts
