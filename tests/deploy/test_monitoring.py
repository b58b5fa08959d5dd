"""Alerts, dashboard and pages name metrics that services really show, and alerts fire when they should."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import httpx
import yaml

from penstock.messaging.metric_list import METRICS, OF_APIS
from tests.flows import shop
from tests.flows.installation import Installation
from tests.flows.reading import get
from tests.servers import choose
from tests.servers.process import free_port

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/alerts.yml"
TESTS = ROOT / "deploy/prometheus/alerts_test.yml"
SCALED = ROOT / "deploy/helm/penstock/templates/scaledobjects.yaml"
DASHBOARD = ROOT / "deploy/grafana/dashboard.py"
NAMED = re.compile(r"\bpenstock_\w+")


async def shows(port: int, name: str) -> str:
    """Return the metrics of a service, once it shows this one."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(httpx.ConnectError):
                if f"penstock_{name}" in (text := (await get(port, "/metrics"))[1]):
                    return text
            await asyncio.sleep(0.1)


async def shown(house: Installation) -> dict[str, str]:
    """The kinds of all metrics of an executor and a worker, by their names."""
    ports = free_port(), free_port()
    await house.apply(*shop.ALL)
    await house.executor(port=ports[0])
    await house.worker(*shop.ALL, port=ports[1])
    texts = [await shows(port, name) for port, name in zip(ports, ("waiting", "running"), strict=True)]
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", "".join(texts), re.MULTILINE))


async def test_metrics_named_by_alerts_dashboard_and_scalers_are_shown(house: Installation) -> None:
    series = {"histogram": ("_bucket", "_sum", "_count")}
    kinds = await shown(house)
    names = {name + ending for name, kind in kinds.items() for ending in series.get(kind, ("",))}
    for file in (RULES, TESTS, SCALED, DASHBOARD.with_name("penstock.json")):
        assert set(NAMED.findall(file.read_text())) - names == set(), file.name


async def test_shown_metrics_are_the_listed_ones(house: Installation) -> None:
    listed = {
        f"penstock_{name}{'_total' if metric.kind == 'counter' else ''}": metric.kind
        for name, metric in METRICS.items()
        if name not in OF_APIS
        and not name.startswith("labelled_")  # these are shown for the labels of a setting
    }
    kinds = {name: kind for name, kind in (await shown(house)).items() if not name.endswith("_created")}
    assert {name: kind for name, kind in kinds.items() if name.startswith("penstock_")} == listed


def test_every_alert_has_its_page_and_the_reverse() -> None:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    alerts = [rule["alert"] for rule in group["rules"]]
    assert alerts == re.findall(r"^## (\w+)$", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE)
    for rule in group["rules"]:
        assert rule["annotations"]["runbook"] == f"docs/runbook.md#{rule['alert'].lower()}"


def test_alerts_fire_when_they_should_and_only_then() -> None:
    for command in (["check", "rules", str(RULES)], ["test", "rules", str(TESTS)]):
        result = subprocess.run([choose.promtool(), *command], capture_output=True, text=True, timeout=60)
        assert result.returncode == 0, result.stdout + result.stderr


def test_each_alert_is_seen_to_fire_and_to_be_quiet() -> None:
    alerts = re.findall(r"alert: (\w+)", RULES.read_text())
    quiet, *loud = yaml.safe_load(TESTS.read_text())["tests"]
    assert [one["alertname"] for one in quiet["alert_rule_test"]] == alerts
    assert {alert for alert in alerts if alert not in str(loud)} == set()


def test_the_dashboard_equals_the_output_of_its_script() -> None:
    spec = importlib.util.spec_from_file_location("dashboard", DASHBOARD)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["dashboard"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.text(), "run: .venv/bin/python deploy/grafana/dashboard.py"
