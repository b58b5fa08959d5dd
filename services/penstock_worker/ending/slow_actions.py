"""The durations of actions. An execution of a slow action gets an envelope to itself, so that no worker claims twenty
of them while other workers are idle. If a worker dies with an envelope, it also delays no other execution."""

from __future__ import annotations

import asyncio

from penstock.store.outbox import shared_envelopes
from penstock.store.session.database import Session, backoff

LONG = 1.0
"""The average seconds above which an action gets separate envelopes."""
BRIEF = 0.5
"""The average seconds below which an action shares envelopes again."""
SAMPLES = 5
"""The number of attempts before an average counts as short. A single long attempt counts at once."""
WEIGHT = 0.2
"""The weight of the newest attempt in the average."""


class ActionDurations:
    """The average durations of one worker's attempts, by namespace. A row is written only when an average crosses a
    bound."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._averages: dict[str, tuple[float, int]] = {}
        self._alone: dict[str, bool] = {}
        self._changed = asyncio.Event()
        self._pending: dict[str, bool] = {}

    def took(self, namespace: str, seconds: float) -> None:
        """Record the duration of an attempt that ended by itself."""
        average, samples = self._averages.get(namespace, (seconds, 0))
        average, samples = average + WEIGHT * (seconds - average), samples + 1
        self._averages[namespace] = average, samples
        if average > LONG:
            alone = True
        elif average < BRIEF and samples >= SAMPLES:
            alone = False
        else:
            return
        if self._alone.get(namespace) is not alone:
            self._alone[namespace] = self._pending[namespace] = alone
            self._changed.set()

    async def run(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._pending:
                namespace, alone = self._pending.popitem()
                send = shared_envelopes.send_alone if alone else shared_envelopes.send_together
                async for attempt in backoff(deadline=60):
                    with attempt:
                        await send(self._session, namespace)
