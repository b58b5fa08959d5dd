"""A collector that does not answer keeps no process from ending."""

from __future__ import annotations

import threading

import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from penstock import tracing
from penstock.tracing import export
from penstock.tracing.spans import START
from tests.kit.otlp import collector


async def test_an_end_does_not_wait_for_a_collector_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    with collector() as silent:
        monkeypatch.setattr(silent, "take", lambda _: answers.wait())
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", silent.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "3600")
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
        monkeypatch.setattr(export, "PATIENCE", 0.1, raising=False)
        tracing.exporting.cache_clear()
        try:
            with tracing.producing(START, "a.b", "public"):
                pass
            await tracing.flush()
            sending = tracing.exporting()
            assert sending is not None
            sending.close()
        finally:
            answers.set()
            tracing.exporting.cache_clear()
