"""A process that traces into a collector of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from opentelemetry import trace
from opentelemetry.util._once import Once

from penstock import tracing
from penstock.tracing.spans import SPANS
from tests.kit.otlp import Collector, Received, collector


@contextmanager
def traced(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Collect the spans of this process until the end of the block; then each span must have been one that the reference
    describes."""
    with collector() as spans:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", spans.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60")  # what is sent again would come twice
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "100")
        # The first provider of a process stays for good, save here.
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER_SET_ONCE", Once())
        tracing.exporting.cache_clear()
        yield spans
        sending = tracing.exporting()
        assert sending is not None
        sending.close()
        tracing.exporting.cache_clear()
    for span in spans.spans:
        documented = SPANS.get(span.name.split()[0])
        if any(name.startswith("penstock.") for name in span.attributes):
            assert documented is not None, span
            assert span.attributes.keys() <= set(documented.attributes), span


async def arrived(received: Collector, *names: str, count: int = 1) -> None:
    """Wait until so many spans of each of these names were received."""
    async with asyncio.timeout(30):
        while any(len(received.named(name)) < count for name in names):
            await asyncio.sleep(0.05)


def by_id(received: Collector) -> dict[str, Received]:
    """Return the received spans by id. None came twice."""
    spans = {span.id: span for span in received.spans}
    assert len(spans) == len(received.spans), "a span was sent twice"
    return spans


def above(received: Collector, name: str) -> str:
    """The name of the span above the one of this name."""
    return by_id(received)[received.one(name).parent].name
