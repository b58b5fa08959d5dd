"""The metrics of Penstock's services at /metrics, beside the measurements from outside. Peers have no such port."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from urllib.request import urlopen

from bench.figures import Measured

PREFIX = "penstock_"


async def counted(ports: Sequence[int]) -> Counter[str]:
    """Counters and histograms of all services, summed over their labels."""
    total: Counter[str] = Counter()
    for text in await asyncio.gather(*(asyncio.to_thread(_read, port) for port in ports)):
        for line in text.splitlines():
            if line.startswith(PREFIX):
                name, value = line.rsplit(" ", 1)
                total[name.partition("{")[0]] += float(value)  # type: ignore[assignment]
    return total


def _read(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def between(earlier: Counter[str], later: Counter[str]) -> Measured:
    """Return the averages of items in a transaction of a handler, of its duration, and of the wait for a worker."""

    def mean(histogram: str) -> float | None:
        count = later[f"{PREFIX}{histogram}_count"] - earlier[f"{PREFIX}{histogram}_count"]
        total = later[f"{PREFIX}{histogram}_sum"] - earlier[f"{PREFIX}{histogram}_sum"]
        return total / count if count else None

    averages = {
        "items_per_batch": (mean("batch_items"), 1, "1"),
        "batch_ms": (mean("batch_seconds"), 1000, "ms"),
        "waited_ms": (mean("start_seconds"), 1000, "ms"),
    }
    return {
        name: (value * factor, unit) for name, (value, factor, unit) in averages.items() if value is not None
    }
