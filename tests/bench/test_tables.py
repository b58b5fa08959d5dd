from __future__ import annotations

import io

from rich.console import Console

from bench import tables
from bench.figures import Figure

FIGURES = [
    Figure("penstock", "rabbitmq", "noop", "throughput", 12345.6, "1/s"),
    Figure("penstock", "rabbitmq", "noop", "cpu_per_1000_total", 0.1234, "s"),
    Figure("celery", "rabbitmq", "noop", "throughput", 331.0, "1/s"),
    Figure("celery", "rabbitmq", "latency-20", "start_p50_ms", 3.3, "ms"),
]


def printed() -> str:
    page = io.StringIO()
    tables.show(FIGURES, Console(width=140, file=page))
    return page.getvalue()


def test_a_table_shows_each_system_that_did_the_work() -> None:
    lines = printed().splitlines()
    (penstock,) = [line.split() for line in lines if "12,346" in line]
    assert penstock == ["penstock", "rabbitmq", "12,346", "0.123"]
    assert [line.split() for line in lines if "331" in line] == [["celery", "rabbitmq", "331", "-"]]


def test_columns_and_tables_that_would_be_empty_are_left_out() -> None:
    text = printed()
    assert "executor" not in text
    assert "recorded" not in text
    assert "Idle" not in text


def test_the_same_tables_stand_on_a_page() -> None:
    lines = tables.markdown(FIGURES).splitlines()
    assert "| system | transport | 1/s | total |" in lines
    assert "| penstock | rabbitmq | 12,346 | 0.123 |" in lines
