"""The counters and timings of a service's own work, for /metrics. Recording a number takes about a microsecond,
handling a batch hundreds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from penstock.messaging.metric_list import METRICS

SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800)
ITEMS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

Read = Callable[[], float]
Labels = tuple[str, ...]


class Metrics:
    """The metrics of one service. A process may run several services, each with a port of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.batch_seconds = self._histogram("batch_seconds")
        self.batch_items = self._histogram("batch_items", ITEMS)
        self.retries = self._counter("retries")
        self.dead_letters = self._counter("dead_letters")
        self.loop_seconds = self._histogram("loop_seconds")
        self.loop_failures = self._counter("loop_failures")
        self.relayed = self._counter("relayed")
        self.restaged = self._counter("restaged")
        self.processes_lost = self._counter("processes_lost")
        self.recovered = self._counter("recovered")
        self.overdue = self._counter("overdue")
        self.start_seconds = self._histogram("start_seconds")
        self.run_seconds = self._histogram("run_seconds")
        self.attempts = self._counter("attempts")
        self.action_batch_items = self._histogram("action_batch_items", ITEMS)

    def _histogram(self, name: str, buckets: Iterable[float] = SECONDS) -> Histogram:
        text, labels = METRICS[name].description, METRICS[name].labels
        return Histogram(f"penstock_{name}", text, labels, buckets=tuple(buckets), registry=self.registry)

    def _counter(self, name: str) -> Counter:
        return Counter(
            f"penstock_{name}", METRICS[name].description, METRICS[name].labels, registry=self.registry
        )

    def show(
        self,
        *,
        gauges: Mapping[str, Read] | None = None,
        counters: Mapping[str, Read] | None = None,
        by_label: Mapping[str, Mapping[str, int]] | None = None,
    ) -> None:
        """Also show figures that the service keeps anyway, and that are read at each request. `by_label` has counters
        with a number for each value of their label. Raises ValueError for a name that is not in METRICS."""
        if unknown := {*(gauges or ()), *(counters or ()), *(by_label or ())} - METRICS.keys():
            raise ValueError(f"{', '.join(sorted(unknown))}: add it to metric_list.py")
        self.registry.register(_Kept(gauges or {}, counters or {}, by_label or {}))


@dataclass(frozen=True, slots=True, eq=False)
class _Kept(Collector):
    gauges: Mapping[str, Read] = field(default_factory=dict)
    counters: Mapping[str, Read] = field(default_factory=dict)
    by_label: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    def collect(self) -> Iterable[Metric]:
        for name, read in self.gauges.items():
            yield gauge(name, {(): read()})
        for name, read in self.counters.items():
            yield counter(name, {(): read()})
        for name, numbers in self.by_label.items():
            yield counter(name, {(value,): number for value, number in numbers.items()})


def gauge(name: str, values: Mapping[Labels, float]) -> Metric:
    """Return a gauge: a number for each set of label values, which is () for a gauge without labels."""
    return _filled(GaugeMetricFamily, name, values)


def counter(name: str, values: Mapping[Labels, float]) -> Metric:
    """Return a counter, in the form of `gauge`."""
    return _filled(CounterMetricFamily, name, values)


def _filled(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily], name: str, values: Mapping[Labels, float]
) -> Metric:
    family = kind(f"penstock_{name}", METRICS[name].description, labels=METRICS[name].labels)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family


def histogram(name: str) -> HistogramMetricFamily:
    """Return a histogram without numbers."""
    return HistogramMetricFamily(f"penstock_{name}", METRICS[name].description, labels=METRICS[name].labels)
