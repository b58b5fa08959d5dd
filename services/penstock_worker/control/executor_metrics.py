"""The figures of a worker's task executors, for /metrics and for heartbeats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from penstock.messaging.metrics import counter, gauge
from penstock.run.task_executors import TaskExecutor

SHOWN = {
    **dict.fromkeys(("active", "available", "leaked", "average_duration"), gauge),
    **dict.fromkeys(("executed", "failed", "cancelled"), counter),
}
"""The figures of a task executor to show, with their names."""


def measured(executors: Mapping[str, TaskExecutor]) -> dict[str, dict[str, float]]:
    """Return the figures of each executor, by the executor's name and the figure's name."""
    return {name: asdict(executor.metrics()) for name, executor in executors.items()}


@dataclass(frozen=True, slots=True, eq=False)
class ExecutorCollector(Collector):
    """A collector that asks the executors at each read of /metrics."""

    executors: Mapping[str, TaskExecutor]

    def collect(self) -> Iterable[Metric]:
        now = measured(self.executors)
        for field, family in SHOWN.items():
            yield family(f"executor_{field}", {(name,): numbers[field] for name, numbers in now.items()})
