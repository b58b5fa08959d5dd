"""What a service counts and times of its own work, for /metrics. A number costs about a microsecond, a batch hundreds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800)
ITEMS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

Read = Callable[[], float]


class Metrics:
    """One for each service of a process, as each has a port of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.batch_seconds = self._histogram("batch_seconds", "A handler's transaction", "queue")
        self.batch_items = self._histogram("batch_items", "Items handled in one transaction", "queue", ITEMS)
        self.retries = self._counter("retries", "Batches tried again", "queue")
        self.dead_letters = self._counter("dead_letters", "Messages given up on", "queue")
        self.loop_seconds = self._histogram("loop_seconds", "A turn of a loop", "loop")
        self.loop_failures = self._counter("loop_failures", "Turns of a loop that failed", "loop")
        self.relayed = self._counter(
            "relayed", "Messages whose sender had not published them, or not known it"
        )
        self.restaged = self._counter("restaged", "Ids whose message was nowhere, and is sent again", "queue")
        self.processes_lost = self._counter("processes_lost", "Services that ended without a word")
        self.recovered = self._counter("recovered", "Attempts that were lost with them")
        self.overdue = self._counter("overdue", "Attempts ended because their worker had not ended them")
        self.start_seconds = self._histogram("start_seconds", "From ready to claimed by this worker", "route")
        self.run_seconds = self._histogram("run_seconds", "An attempt, from its start to its end", "action")
        self.attempts = self._counter(
            "attempts", "Attempts ended, by the status that they led to", "action", "status"
        )

    def _histogram(self, name: str, text: str, label: str, buckets: Iterable[float] = SECONDS) -> Histogram:
        return Histogram(f"penstock_{name}", text, [label], buckets=tuple(buckets), registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"penstock_{name}", text, labels, registry=self.registry)

    def show(
        self,
        *,
        gauges: Mapping[str, Read] | None = None,
        counters: Mapping[str, Read] | None = None,
        by_label: Mapping[tuple[str, str], Mapping[str, int]] | None = None,
    ) -> None:
        """Also show what the service keeps anyway: read when somebody asks. `by_label`: counters, by their names and labels,
        that have a number for each value of the label."""
        self.registry.register(_Kept(gauges or {}, counters or {}, by_label or {}))


@dataclass(frozen=True, slots=True, eq=False)
class _Kept(Collector):
    gauges: Mapping[str, Read] = field(default_factory=dict)
    counters: Mapping[str, Read] = field(default_factory=dict)
    by_label: Mapping[tuple[str, str], Mapping[str, int]] = field(default_factory=dict)

    def collect(self) -> Iterable[Metric]:
        for name, read in self.gauges.items():
            yield GaugeMetricFamily(f"penstock_{name}", name.replace("_", " "), value=read())
        for name, read in self.counters.items():
            yield CounterMetricFamily(f"penstock_{name}", name.replace("_", " "), value=read())
        for (name, label), numbers in self.by_label.items():
            family = CounterMetricFamily(f"penstock_{name}", name.replace("_", " "), labels=[label])
            for value, number in numbers.items():
                family.add_metric([value], number)
            yield family
