"""The processes that trace, by OpenTelemetry's own variables."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from penstock.tracing import switch

HERE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("variables", "asked"),
    [
        ({}, False),
        (HERE, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:4318/v1/traces"}, True),
        ({"OTEL_TRACES_EXPORTER": "console"}, True),
        ({**HERE, "OTEL_TRACES_EXPORTER": "none"}, False),
        ({**HERE, "OTEL_SDK_DISABLED": "true"}, False),
        ({**HERE, "OTEL_SDK_DISABLED": "false"}, True),
        ({"OTEL_SERVICE_NAME": "shop"}, False),
    ],
)
def test_it_is_asked_for_by_the_standard_variables(variables: dict[str, str], asked: bool) -> None:
    assert switch.is_asked_for(variables) is asked


def test_where_it_is_not_installed_that_is_said_and_nothing_else_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in HERE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(switch, "is_installed", lambda: False)
    with capture_logs() as logs:
        assert not switch.is_switched_on()
    assert [(line["event"], "penstock[tracing]" in line["hint"]) for line in logs] == [
        ("tracing.not_installed", True)
    ]


def test_an_exporter_that_there_is_none_of_is_refused_with_those_there_are() -> None:
    code = "from penstock import tracing; tracing.set_up()"
    environment = {"OTEL_TRACES_EXPORTER": "zipkin", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )
    assert "no exporter 'zipkin'" in done.stderr
