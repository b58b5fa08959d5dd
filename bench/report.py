"""The tables for people, and the lines for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.figures import Figure

GROUPS = ("client", "executor", "worker", "postgres", "rabbitmq", "total")


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    metric: str
    digits: int = 2
    divisor: float = 1
    work: str = ""
    """Another work than the table's own."""


COST = (
    Column("1/s", "throughput", 0),
    *(Column(group, f"cpu_per_1000_{group}", 3) for group in GROUPS),
    Column("commits", "commits_per_1000", 0),
    Column("WAL kB", "wal_bytes_per_1000", 0, 1024),
    Column("foreign load", "foreign_load"),
)
OWN = (Column("items a batch", "items_per_batch", 1), Column("ms a batch", "batch_ms", 1))
FLOWS = (Column("s", "seconds"), Column("tasks/s", "tasks_per_second", 0), *COST[1:])
PERCENTILES = (50, 95, 99)
LATENCY = tuple(
    Column(f"{what} p{p}", f"{what}_p{p}_ms", 1) for what in ("start", "recorded") for p in PERCENTILES
)
TABLES: tuple[tuple[str, str, tuple[Column, ...]], ...] = (
    (
        "noop",
        "No-ops: rate; CPU seconds of each process group, writing transactions and log per 1,000",
        (*COST, *OWN),
    ),
    ("noop-100-callers", "No-ops from 100 callers at once, one each", COST),
    ("events", "Events that each start a no-op", COST),
    ("limits-hot", "No-ops under one limit of 100 at once", COST),
    ("limits-spread", "No-ops under a limit of 100 for each of 1,000 customers", COST),
    (
        "latency-20",
        "20 a second: milliseconds from submit to begin, and to the committed end",
        (*LATENCY, Column("waited, on average", "waited_ms", 1)),
    ),
    ("load-200", "200 a second: the same", LATENCY),
    (
        "latency-20",
        "CPU seconds per 1,000, by load",
        (
            Column("as many as it can", "cpu_per_1000_total", 3, work="noop"),
            Column("200/s", "cpu_per_1000_total", 3, work="load-200"),
            Column("20/s", "cpu_per_1000_total", 3),
        ),
    ),
    (
        "chain-100",
        "100 steps, one after the other",
        (Column("s", "seconds"), Column("ms a step", "ms_per_step"), Column("x the probe", "times_probe", 1)),
    ),
    (
        "fanout-100",
        "One step, 100 at once, one step",
        (Column("s", "seconds"), Column("tasks/s", "tasks_per_second", 0)),
    ),
    ("fanout-10000", "One step, 10,000 at once, one step", FLOWS),
    (
        "fanout-linear",
        "One step, many at once, one step: microseconds a task, by how many",
        (
            Column("1,000", "us_per_task_1000", 0),
            Column("10,000", "us_per_task_10000", 0),
            Column("50,000", "us_per_task_50000", 0),
            Column("10,000 : 1,000", "ratio"),
        ),
    ),
    ("workflows-1000x10", "1,000 workflows at once, of 10 steps one after the other", FLOWS),
    (
        "schedules-10000",
        "10,000 schedules each minute on three executors, one killed every 10 s; lag in ms; as many daily ones when idle",
        (
            Column("fires", "fires", 0),
            Column("missing", "missing", 0),
            Column("wrong", "wrong", 0),
            Column("kills", "kills", 0),
            Column("lag p50", "lag_p50_ms", 0),
            Column("p99", "lag_p99_ms", 0),
            Column("max", "lag_max_ms", 0),
            Column("idle, 1/s", "idle_per_second"),
            Column("without any", "idle_without_per_second"),
        ),
    ),
    (
        "idle",
        "Idle",
        (Column("transactions/s", "transactions_per_second"), Column("% of a core", "core_percent")),
    ),
)


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print a table for each group of figures that there is, without columns that would be empty."""
    values = {figure.key: figure.value for figure in figures}
    systems = dict.fromkeys((figure.system, figure.transport) for figure in figures)
    for work, title, columns in TABLES:
        rows = [s for s in systems if any((*s, work, column.metric) in values for column in columns)]
        found = {c: [values.get((*row, c.work or work, c.metric)) for row in rows] for c in columns}
        table = Table("system", "transport", box=SIMPLE_HEAD)
        kept = [column for column, cells in found.items() if any(value is not None for value in cells)]
        for column in kept:
            table.add_column(column.title, justify="right")
        for number, row in enumerate(rows):
            table.add_row(*row, *(_cell(found[column][number], column) for column in kept))
        if rows:
            console.print(title, style="bold")
            console.print(table)


def _cell(value: float | None, column: Column) -> str:
    return "-" if value is None else f"{value / column.divisor:,.{column.digits}f}"


def write_lines(figures: Iterable[Figure], path: Path) -> None:
    """One JSON object a line for each figure."""
    path.write_text("".join(json.dumps(figure.line()) + "\n" for figure in figures))
