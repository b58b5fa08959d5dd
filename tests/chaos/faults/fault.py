"""A fault: something that is broken on purpose. It breaks it, waits as long as it drew, and mends it."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.chaos.cluster import Cluster

Act = Callable[[Cluster, random.Random], Awaitable[str]]
"""Returns what was hit. An empty text: there was nothing that could be."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault. `spares` is true if the fault gives no worker a reason to lose a running attempt."""

    name: str
    weight: int
    act: Act
    spares: bool = False
