"""The tables for people, on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench.figures import Figure
from bench.works import LOADS

GROUPS = ("client", "server", "executor", "worker", "postgres", "rabbitmq", "total")
KEYS = 2
"""Columns that say whose row it is."""


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


def _percentiles(*times: str) -> tuple[Column, ...]:
    return tuple(Column(f"{name} p{p}", f"{name}_p{p}_ms", 1) for name in times for p in (50, 95, 99))


LATENCY = _percentiles("start", "recorded")
RESULT = _percentiles("result")
CPU = Column("CPU s per 1,000", "cpu_per_1000_total", 3)
LOAD = COST[-1]
TABLES: tuple[tuple[str, str, tuple[Column, ...]], ...] = (
    (
        "noop",
        "No-ops: rate; CPU seconds of each process group, writing transactions and log per 1,000",
        (*COST, *OWN),
    ),
    ("noop-100-callers", "No-ops from 100 callers at once, one each", COST),
    (
        "result-100-callers",
        "No-ops from 100 callers at once, each waiting for its result",
        (*COST[:1], *RESULT, CPU, LOAD),
    ),
    ("events", "Events that each start a no-op", COST),
    ("limits-hot", "No-ops under one limit of 100 at once", COST),
    ("limits-spread", "No-ops under a limit of 100 for each of 1,000 customers", COST),
    (
        "latency-20",
        "20 a second: milliseconds from submit to begin, and to the committed end",
        (*LATENCY, Column("waited, on average", "waited_ms", 1), LOAD),
    ),
    *((f"load-{rate}", f"{rate:,} a second: the same", (*LATENCY, LOAD)) for rate in LOADS),
    (
        "latency-50pct",
        "At half of what 100 callers get done: the same",
        (Column("1/s", "rate", 0), *LATENCY, CPU, LOAD),
    ),
    (
        "result-20",
        "20 a second: milliseconds from submit to the result in the client's hands",
        (*RESULT, CPU, LOAD),
    ),
    (
        "workflow-latency",
        "20 workflows of ten steps a second: milliseconds from submit to the end of the last step; CPU by steps",
        (*_percentiles("workflow"), CPU, LOAD),
    ),
    (
        "latency-20",
        "CPU seconds per 1,000, by load",
        (
            Column("as many as it can", "cpu_per_1000_total", 3, work="noop"),
            *(
                Column(f"{rate:,}/s", "cpu_per_1000_total", 3, work=f"load-{rate}")
                for rate in reversed(LOADS)
            ),
            Column("20/s", "cpu_per_1000_total", 3),
        ),
    ),
    (
        "chain-100",
        "100 steps, one after the other",
        (Column("s", "seconds"), Column("ms a step", "ms_per_step"), Column("x the probe", "times_probe", 1)),
    ),
    (
        "durable-100",
        "100 steps of one durable function, each recorded before the next",
        (Column("s", "seconds"), Column("ms a step", "ms_per_step")),
    ),
    (
        "durable-1000x10",
        "1,000 durable functions at once, of 10 steps each",
        (
            Column("s", "seconds"),
            Column("steps/s", "tasks_per_second", 0),
            Column("CPU-s per 1,000", "cpu_per_1000_total", 3),
        ),
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
        "rss",
        "Memory in MiB, idle and saturated (`max`), by process group; shared pages count in part",
        tuple(
            Column(f"{group}{more}", f"{kind}_mib_{group}", 0)
            for group in GROUPS
            for kind, more in (("idle", ""), ("saturated", " max"))
        ),
    ),
    (
        "idle",
        "Idle",
        (Column("transactions/s", "transactions_per_second"), Column("% of a core", "core_percent")),
    ),
)


Cells = tuple[str, list[str], list[list[str]]]
"""A title, the heads of the columns, and the rows."""


def filled(figures: Sequence[Figure]) -> Iterator[Cells]:
    """Yield a table for each group of figures, without empty columns."""
    values = {figure.key: figure.value for figure in figures}
    systems = dict.fromkeys((figure.system, figure.transport) for figure in figures)
    for work, title, columns in TABLES:
        rows = [s for s in systems if any((*s, work, column.metric) in values for column in columns)]
        cells_by_column = {c: [values.get((*row, c.work or work, c.metric)) for row in rows] for c in columns}
        nonempty = [
            column for column, cells in cells_by_column.items() if any(value is not None for value in cells)
        ]
        if rows:
            cells = [
                [*row, *(_cell(cells_by_column[column][number], column) for column in nonempty)]
                for number, row in enumerate(rows)
            ]
            yield title, ["system", "transport", *(column.title for column in nonempty)], cells


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print them."""
    for title, heads, rows in filled(figures):
        table = Table(box=SIMPLE_HEAD)
        for number, head in enumerate(heads):
            table.add_column(head, justify="right" if number >= KEYS else "left")
        for row in rows:
            table.add_row(*row)
        console.print(title, style="bold")
        console.print(table)


def markdown(figures: Sequence[Figure]) -> str:
    """Return the tables as Markdown."""
    parts = []
    for title, heads, rows in filled(figures):
        rule = ["---"] * KEYS + ["---:"] * (len(heads) - KEYS)
        lines = [f"| {' | '.join(row)} |" for row in (heads, rule, *rows)]
        parts.append("\n".join([f"### {title}", "", *lines, ""]))
    return "\n".join(parts)


def _cell(value: float | None, column: Column) -> str:
    return "-" if value is None else f"{value / column.divisor:,.{column.digits}f}"
