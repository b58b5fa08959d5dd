"""Writes deploy/grafana/penstock.json: `.venv/bin/python deploy/grafana/dashboard.py`. A test sees that it was done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("penstock.json")
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 8, 8
SHARES = (0.5, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Plot:
    """`lines`: PromQL by legend."""

    title: str
    about: str
    unit: str
    lines: dict[str, str]
    stacked: bool = False


def times(metric: str, by: str) -> dict[str, str]:
    """Return the queries of the usual percentiles of a histogram of seconds, over all replicas."""
    rate = f"sum by (le, {by}) (rate(penstock_{metric}_bucket[$__rate_interval]))"
    return {f"p{share * 100:g} {{{{{by}}}}}": f"histogram_quantile({share}, {rate})" for share in SHARES}


def counted(metric: str, by: str) -> dict[str, str]:
    """Return the query of a counter that each replica has for itself."""
    return {f"{{{{{by}}}}}": f"sum by ({by}) (rate(penstock_{metric}_total[$__rate_interval]))"}


def whole(metric: str, by: str) -> dict[str, str]:
    """Return the query of a gauge of the installation, which all replicas show."""
    return {f"{{{{{by}}}}}": f"max by ({by}) (penstock_{metric})"}


ROWS: dict[str, tuple[Plot, ...]] = {
    "Work": (
        Plot(
            "Ended",
            "Executions of actions and workflows, by how they ended.",
            "ops",
            {
                "{{status}}": "sum by (status) (max by (action, status) "
                "(rate(penstock_executions_ended_total[$__rate_interval])))"
            },
            stacked=True,
        ),
        Plot("Waiting", "Open executions by what they wait for.", "short", whole("waiting", "cause"), stacked=True),
        Plot(
            "Running",
            "Attempts and workflows under way.",
            "short",
            {"actions": "max(penstock_actions_running)", "workflows": "max(penstock_workflows_running)"},
        ),
        Plot("From creation to end", "Of what was started from outside, waits included.", "s", {
            f"p{share * 100:g} {{{{action}}}}": f"histogram_quantile({share}, max by (le, action) "
            "(rate(penstock_execution_seconds_bucket[$__rate_interval])))"
            for share in SHARES
        }),
        Plot("From ready to claimed", "What work waits for a worker.", "s", times("start_seconds", "route")),
        Plot("Attempts", "From start to end.", "s", times("run_seconds", "action")),
    ),
    "Workers": (
        Plot("Ready by route", "Executions that only a free worker is missing for.", "short", whole("route_ready", "route")),
        Plot("The first of them waits", "", "s", whole("route_oldest_seconds", "route")),
        Plot("Slots by route", "What the workers of a route can run at once.", "short", whole("route_slots", "route")),
        Plot("Free slots", "By worker.", "short", {"{{instance}}": "penstock_free_slots"}),
        Plot("Services", "Those that live.", "short", {"{{kind}} {{state}}": "max by (kind, state) (penstock_processes)"}),
        Plot("Lost", "Lost executors and workers, attempts lost with them, results refused.", "short", {
            "services": "sum(increase(penstock_processes_lost_total[$__rate_interval]))",
            "attempts": "sum(increase(penstock_recovered_total[$__rate_interval]))",
            "refused": "sum(increase(penstock_claims_lost_total[$__rate_interval]))",
        }),
    ),
    "Events and rules": (
        Plot("Events", "Stored, by trigger.", "ops", counted("events", "trigger")),
        Plot("Matched", "Events that at least one rule took up.", "ops", counted("events_matched", "trigger")),
        Plot("Errors of rules", "", "ops", counted("rule_errors", "rule")),
    ),
    "Schedules": (
        Plot("Fires", "", "ops", {
            status: f"sum(rate(penstock_schedule_fires_{status}_total[$__rate_interval]))"
            for status in ("created", "queued", "skipped", "failed", "missed")
        }),
        Plot("Lag", "The most of the last five minutes.", "s", {"lag": "max(penstock_schedule_lag_seconds)"}),
        Plot("In trouble", "", "short", {
            trouble: f"max(penstock_schedules_{trouble})" for trouble in ("late", "broken", "erroring", "orphaned")
        }),
    ),
    "Inside": (
        Plot("Handlers", "A transaction, by queue.", "s", times("batch_seconds", "queue")),
        Plot("Items a transaction", "It grows under load.", "short", {
            "{{queue}}": "sum by (queue) (rate(penstock_batch_items_sum[$__rate_interval]))"
            " / sum by (queue) (rate(penstock_batch_items_count[$__rate_interval]))"
        }),
        Plot("Loops that failed", "", "ops", counted("loop_failures", "loop")),
        Plot("Staged messages", "And the age of the oldest.", "short", {
            "messages": "max(penstock_outbox_messages)", "age in seconds": "max(penstock_outbox_oldest_seconds)",
        }),
        Plot("Dead letters", "Kept, by queue and reason.", "short", {
            "{{queue}}: {{reason}}": "max by (queue, reason) (penstock_dead_letters_kept)"
        }),
        Plot("Database connections", "Of each service: used, and statements that wait for one.", "short", {
            "used {{instance}}": "penstock_database_connections_used", "waiting {{instance}}": "penstock_database_waiting",
        }),
    ),
}  # fmt: skip


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    y = 0
    for row, plots in ROWS.items():
        panels.append({"id": len(panels) + 1, "type": "row", "title": row, "gridPos": _place(0, y, 24, 1)})
        for n, plot in enumerate(plots):
            place = _place(n % 3 * WIDTH, y + 1 + n // 3 * HEIGHT, WIDTH, HEIGHT)
            panels.append(_panel(len(panels) + 1, plot, place))
        y += 1 + -(-len(plots) // 3) * HEIGHT
    return {
        "uid": "penstock", "title": "Penstock", "tags": ["penstock"], "schemaVersion": 39, "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"}, "editable": True, "panels": panels,
        "templating": {"list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]},
    }  # fmt: skip


def _place(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(id: int, plot: Plot, place: dict[str, int]) -> dict[str, Any]:
    stacking = {"mode": "normal" if plot.stacked else "none"}
    custom = {
        "fillOpacity": 30 if plot.stacked else 8,
        "lineWidth": 1,
        "showPoints": "never",
        "stacking": stacking,
    }
    return {
        "id": id, "type": "timeseries", "title": plot.title, "description": plot.about, "gridPos": place, "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": plot.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}},
        "targets": [
            {"refId": chr(ord("A") + n), "expr": expr, "legendFormat": legend, "datasource": SOURCE}
            for n, (legend, expr) in enumerate(plot.lines.items())
        ],
    }  # fmt: skip


def text() -> str:
    return json.dumps(dashboard(), indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
