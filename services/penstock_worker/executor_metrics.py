"""What the task executors of a worker say of themselves, for /metrics and for its heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.run.task_executors import TaskExecutor

GAUGES = {
    "active": "Attempts that run now",
    "available": "How many more it would start now",
    "leaked": "Attempts given up that still run",
    "average_duration": "Seconds that an ended attempt took",
}
COUNTERS = {
    "executed": "Attempts ended",
    "failed": "Of those, how many failed",
    "cancelled": "Of those, how many were cancelled from outside",
}


def measured(executors: Mapping[str, TaskExecutor]) -> dict[str, dict[str, float]]:
    """The numbers of each executor, by its name and theirs."""
    return {name: asdict(executor.metrics()) for name, executor in executors.items()}


@dataclass(frozen=True, slots=True, eq=False)
class ExecutorCollector(Collector):
    """Asks the executors whenever somebody reads /metrics."""

    executors: Mapping[str, TaskExecutor]

    def collect(self) -> Iterable[Metric]:
        now = measured(self.executors)
        for kinds, family in ((GAUGES, GaugeMetricFamily), (COUNTERS, CounterMetricFamily)):
            for field, text in kinds.items():
                metric = family(f"penstock_executor_{field}", text, labels=["executor"])
                for name, numbers in now.items():
                    metric.add_metric([name], numbers[field])
                yield metric
