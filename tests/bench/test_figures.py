from __future__ import annotations

from bench.figures import Figure, beside_probe, cost_per_1000, latency, medians, percentile
from bench.meters import Cost


def figure(value: float, system: str = "penstock") -> Figure:
    return Figure(system, "rabbitmq", "noop", "throughput", value, "1/s")


def test_a_percentile_is_one_of_the_values() -> None:
    values = [0.4, 0.1, 0.3, 0.2]
    assert [percentile(values, share) for share in (0.0, 0.25, 0.5, 0.51, 0.99, 1.0)] == [
        0.1, 0.1, 0.2, 0.3, 0.4, 0.4,
    ]  # fmt: skip


def test_latencies_are_milliseconds() -> None:
    assert latency("start", [0.002] * 99 + [1.0]) == {
        "start_p50_ms": (2.0, "ms"),
        "start_p95_ms": (2.0, "ms"),
        "start_p99_ms": (2.0, "ms"),
    }


def test_a_figure_is_the_median_over_the_rounds() -> None:
    figures_by_system = medians([figure(3), figure(9, "celery"), figure(1), figure(2)])
    assert [(f.system, f.value) for f in figures_by_system] == [("penstock", 2), ("celery", 9)]


def test_a_line_has_the_agreed_keys() -> None:
    assert figure(1234.56789).line() == {
        "system": "penstock",
        "transport": "rabbitmq",
        "work": "noop",
        "metric": "throughput",
        "value": 1234.6,
        "unit": "1/s",
    }


def test_costs_are_per_thousand_and_summed_over_the_groups() -> None:
    cost = Cost(seconds=2, cpu={"client": 0.5, "postgres": 1.5}, foreign=0.1, wal=4000, commits=8)
    assert cost_per_1000(cost, 2000) == {
        "cpu_per_1000_client": (0.25, "s"),
        "cpu_per_1000_postgres": (0.75, "s"),
        "cpu_per_1000_total": (1.0, "s"),
        "commits_per_1000": (4.0, "1"),
        "wal_bytes_per_1000": (2000.0, "B"),
        "foreign_load": (0.1, "1"),
    }


def test_a_chain_is_told_as_a_multiple_of_the_probe_of_its_own_run() -> None:
    figures = [
        Figure("penstock", "rabbitmq", "chain-100", "ms_per_step", 9.0, "ms"),
        Figure("probe", "rabbitmq", "chain-100", "ms_per_step", 3.0, "ms"),
        Figure("penstock", "rabbitmq", "workflows-1000x10", "ms_per_step", 190.0, "ms"),
    ]
    assert [(f.system, f.value) for f in beside_probe(figures)[3:]] == [("penstock", 3.0), ("probe", 1.0)]
