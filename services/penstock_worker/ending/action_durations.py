"""The durations of actions. Each execution of an action that takes long travels in an envelope of its own. So no worker
takes twenty of them at once while other workers have nothing to do. A worker that dies with an envelope in hand delays no
other execution."""

from __future__ import annotations

import asyncio

from penstock.store.outbox import envelopes
from penstock.store.session.database import Session, backoff

LONG = 1.0
"""Seconds on average from which on an action travels alone."""
BRIEF = 0.5
"""Seconds on average below which it travels with others again."""
SAMPLES = 5
"""Attempts until an average is believed to be brief. One long attempt is believed at once."""
WEIGHT = 0.2
"""Of the newest attempt in the average."""


class ActionDurations:
    """The averages of one worker, by namespace. Writes where one crosses a bound, and only then."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._averages: dict[str, tuple[float, int]] = {}
        self._alone: dict[str, bool] = {}
        self._changed = asyncio.Event()
        self._pending: dict[str, bool] = {}

    def took(self, namespace: str, seconds: float) -> None:
        """An attempt has ended by itself."""
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
                send = envelopes.send_alone if alone else envelopes.send_together
                async for attempt in backoff(deadline=60):
                    with attempt:
                        await send(self._session, namespace)
