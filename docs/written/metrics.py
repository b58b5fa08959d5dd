"""docs/reference/metrics.md: every metric that services show."""

from __future__ import annotations

from collections.abc import Mapping

from docs.written.fields import cell
from penstock.messaging import metric_list
from penstock.messaging.metric_list import Described

HEAD = """# Metrics

This page is written by `docs/written` from `common/penstock/messaging/metric_list.py`; `/metrics` has the same
descriptions. All names begin with `penstock_`. A counter ends with `_total` and counts from the start of the process. A histogram has
`_bucket`, `_sum` and `_count`; its values are seconds if its name ends with `_seconds`. For ports, alerts and the dashboard, see
[health, metrics and logs](../metrics.md).
"""
ALL_ALIKE = (
    "All executors show the same numbers: use the `max` over the executors, not the `sum`. A counter goes on if another "
    "executor takes over the measurement. The 200 actions with the most ended executions are "
    "counted separately. `executions_ended` counts all others as `other`, and `execution_seconds` omits them."
)
OF_ALL_SCHEDULES = (
    "All executors show the same numbers, measured once a minute. See [schedules](../schedules.md)."
)
SECTIONS: Mapping[str, tuple[str, Mapping[str, Described]]] = {
    "Every service": ("", metric_list.OF_ALL),
    "Executors": ("Each executor counts its own work.", metric_list.OF_EXECUTORS),
    "Executors, of schedules": ("Each executor counts its own work.", metric_list.OF_FIRES),
    "Executors, of the installation as a whole": (ALL_ALIKE, metric_list.OF_THE_INSTALLATION),
    "Executors, of all schedules": (OF_ALL_SCHEDULES, metric_list.OF_ALL_SCHEDULES),
    "Workers": ("", metric_list.OF_WORKERS),
    "APIs": (
        "An API has these metrics if it reads from [a standby](../how-to/clusters.md#read-from-a-standby).",
        metric_list.OF_APIS,
    ),
}


def page() -> str:
    return HEAD + "".join(_section(heading, *one) for heading, one in SECTIONS.items())


def _section(heading: str, said: str, metrics: Mapping[str, Described]) -> str:
    intro = f"{said}\n\n" if said else ""
    rows = "".join(_row(name, one) for name, one in metrics.items())
    return f"\n## {heading}\n\n{intro}| metric | kind | labels | description |\n|---|---|---|---|\n{rows}"


def _row(name: str, one: Described) -> str:
    ending = "_total" if one.kind == "counter" else ""
    labels = ", ".join(f"`{label}`" for label in one.labels)
    return f"| {' | '.join(map(cell, (f'`{name}{ending}`', one.kind, labels, one.description)))} |\n"
