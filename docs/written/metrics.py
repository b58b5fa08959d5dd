"""docs/reference/metrics.md: every metric that services show."""

from __future__ import annotations

from collections.abc import Mapping

from docs.written.fields import cell
from penstock.messaging import metric_list
from penstock.messaging.metric_list import Described

HEAD = """# Metrics

This page is written by `docs/written` from `common/penstock/messaging/metric_list.py`; `/metrics` says the same. All begin with `penstock_`.
Counters end with `_total` and count since the process started; a histogram has `_bucket`, `_sum` and `_count`, in seconds where its
name says so. Where they are found, what to alert on, and the dashboard: [health, metrics and logs](../metrics.md).
"""
ALL_ALIKE = (
    "All executors show the same numbers: take the `max` over them, not the `sum`. What is counted goes on whichever of them "
    "measures. 200 actions have numbers of their own, the rest is `other`."
)
OF_ALL_SCHEDULES = "The same, measured once a minute. See [schedules](../schedules.md)."
SECTIONS: Mapping[str, tuple[str, Mapping[str, Described]]] = {
    "Every service": ("", metric_list.OF_ALL),
    "Executors": ("What this replica did.", metric_list.OF_EXECUTORS),
    "Executors, of schedules": ("What this replica did.", metric_list.OF_FIRES),
    "Executors, of the installation as a whole": (ALL_ALIKE, metric_list.OF_THE_INSTALLATION),
    "Executors, of all schedules": (OF_ALL_SCHEDULES, metric_list.OF_ALL_SCHEDULES),
    "Workers": ("", metric_list.OF_WORKERS),
    "APIs": (
        "With a [standby to read from](../how-to/clusters.md#read-from-a-standby).",
        metric_list.OF_APIS,
    ),
}


def page() -> str:
    return HEAD + "".join(_section(heading, *one) for heading, one in SECTIONS.items())


def _section(heading: str, said: str, metrics: Mapping[str, Described]) -> str:
    intro = f"{said}\n\n" if said else ""
    rows = "".join(_row(name, one) for name, one in metrics.items())
    return f"\n## {heading}\n\n{intro}| metric | kind | labels | says |\n|---|---|---|---|\n{rows}"


def _row(name: str, one: Described) -> str:
    ending = "_total" if one.kind == "counter" else ""
    labels = ", ".join(f"`{label}`" for label in one.labels)
    return f"| {' | '.join(map(cell, (f'`{name}{ending}`', one.kind, labels, one.description)))} |\n"
