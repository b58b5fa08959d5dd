"""The rule by which refusals count against the channel on which they came, and not against the queue.

A channel may be opened between the death of a queue's leader and the election of the next one. Such a channel refuses
every message for that queue as long as it lives, although the queue is well. With 3.10.8, three of 40 channels opened
around a kill did so. Other channels are not affected, so a publisher that is refused opens another one.

But a queue may be full, or without a leader for long, and closing a channel loses the pending confirmations of other
queues. So each further replacement comes later.
"""

from __future__ import annotations

import time
from collections.abc import Collection

SOON = 1.0
"""Seconds until a queue that still refuses counts against the channel for the second time; doubled each time."""
LATEST = 300.0
"""The maximum seconds between two replacements of a channel for one queue."""


class Refusals:
    """The queues that refuse messages, with the instants at which they count again."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[float, float]] = {}
        """By refusing queue: the instant at which it counts again, and the seconds to wait after that."""

    def __bool__(self) -> bool:
        return bool(self._waits)

    def over(self, queues: Collection[str]) -> None:
        """Forget the refusals of these queues: they accept messages."""
        for queue in queues:
            self._waits.pop(queue, None)

    def count(self, queues: Collection[str]) -> bool:
        """Count a refusal, or a missing answer, of each of these queues. Return True if the channel should be
        replaced."""
        now, counts = time.monotonic(), False
        for queue in queues:
            at, wait = self._waits.get(queue, (now, SOON))
            if now >= at:
                self._waits[queue] = now + wait, min(2 * wait, LATEST)
                counts = True
        return counts
