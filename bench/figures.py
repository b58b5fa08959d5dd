"""A figure, and what is made of many."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from bench.meters import Cost


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. The fields are the keys of its line of `--jsonl`."""

    system: str
    transport: str
    work: str
    metric: str
    value: float
    unit: str

    @property
    def key(self) -> tuple[str, str, str, str]:
        return (self.system, self.transport, self.work, self.metric)

    def line(self) -> dict[str, object]:
        return asdict(self) | {"value": float(f"{self.value:.5g}")}


Measured = dict[str, tuple[float, str]]
"""What a work gives: value and unit by metric."""


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of `values` that at least `share` (0..1) of them do not exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def latency(name: str, seconds: Sequence[float]) -> Measured:
    """`name`_p50_ms, _p95_ms and _p99_ms."""
    return {f"{name}_p{p}_ms": (1000 * percentile(seconds, p / 100), "ms") for p in (50, 95, 99)}


def cost_per_1000(cost: Cost, count: int) -> Measured:
    """CPU seconds by process group, log and writing transactions per 1,000; the load by others."""
    share = 1000 / count
    measured = {f"cpu_per_1000_{name}": (seconds * share, "s") for name, seconds in cost.cpu.items()}
    measured["cpu_per_1000_total"] = (sum(cost.cpu.values()) * share, "s")
    if cost.commits is not None:
        measured["commits_per_1000"] = (cost.commits * share, "1")
    if cost.wal is not None:
        measured["wal_bytes_per_1000"] = (cost.wal * share, "B")
    return measured | {"foreign_load": (cost.foreign, "1")}


def beside_probe(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures, and the time of each chain of steps as a multiple of the probe's."""
    steps = [figure for figure in figures if figure.metric == "ms_per_step"]
    probe = {figure.work: figure.value for figure in steps if figure.system == "probe"}
    return [
        *figures,
        *(
            Figure(f.system, f.transport, f.work, "times_probe", f.value / probe[f.work], "1")
            for f in steps
            if f.work in probe
        ),
    ]


def medians(figures: Iterable[Figure]) -> list[Figure]:
    """One figure for each key, with the median of its values, in the order in which the keys first came."""
    values: dict[tuple[str, str, str, str], list[float]] = {}
    units: dict[tuple[str, str, str, str], str] = {}
    for figure in figures:
        values.setdefault(figure.key, []).append(figure.value)
        units[figure.key] = figure.unit
    return [Figure(*key, statistics.median(group_values), units[key]) for key, group_values in values.items()]
