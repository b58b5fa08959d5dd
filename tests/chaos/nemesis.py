"""The nemesis: draws faults by a seed and makes them happen, one after the other, with pauses."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tests.chaos.cluster import Cluster
from tests.chaos.faults import OF_PROCESSES, OF_SERVERS, named
from tests.chaos.faults.fault import Fault


@dataclass(frozen=True, slots=True)
class Happened:
    """A fault, from when to when (seconds since the epoch), and what it hit. `spares`: it gave no worker a reason to lose what
    it runs."""

    name: str
    began: float
    ended: float
    hit: str
    spares: bool


class Nemesis:
    """Two of them work side by side: one on processes, one on servers and the network between. `only`: names of faults, where
    it is not all of them."""

    def __init__(self, cluster: Cluster, seed: int, only: Sequence[str] = ()) -> None:
        self.happened: list[Happened] = []
        self._cluster = cluster
        self._seed = seed
        self._only = only

    async def rage(self, seconds: float, *, between_processes: float, between_servers: float) -> None:
        """Break things for so long. The means of the pauses are given in seconds."""
        until = time.monotonic() + seconds
        await asyncio.gather(
            self._break(
                named(OF_PROCESSES, self._only),
                random.Random(f"{self._seed} processes"),
                between_processes,
                until,
            ),
            self._break(
                named(OF_SERVERS, self._only), random.Random(f"{self._seed} servers"), between_servers, until
            ),
        )

    async def _break(self, faults: Sequence[Fault], draw: random.Random, pause: float, until: float) -> None:
        weights = [fault.weight for fault in faults]
        if not faults:
            return
        while True:
            await asyncio.sleep(draw.uniform(0.5, 1.5) * pause)
            if time.monotonic() > until:
                return
            [fault] = draw.choices(faults, weights)
            # A draw of its own, so that what one fault draws does not change the next ones.
            own, began = random.Random(draw.random()), time.time()
            hit = await fault.act(self._cluster, own)
            if hit:
                self.happened.append(Happened(fault.name, began, time.time(), hit, fault.spares))
