"""The decision to sample: by the process that begins a trace, except where the sampler says otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry import trace

from penstock import tracing
from penstock.tracing.spans import START
from tests.flows.traced import arrived, traced
from tests.kit.otlp import Collector

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Return the spans that this process sends."""
    with traced(monkeypatch) as found:
        yield found


@pytest.mark.parametrize(
    ("sampler", "flags", "taken"),
    [
        (None, "01", True),
        (None, "00", False),
        ("always_off", "01", False),
        ("always_on", "00", True),
    ],
)
def test_a_trace_from_outside_goes_on_if_the_sampler_takes_it(
    received: Collector, monkeypatch: pytest.MonkeyPatch, sampler: str | None, flags: str, taken: bool
) -> None:
    if sampler is not None:
        monkeypatch.setenv("OTEL_TRACES_SAMPLER", sampler)
    given = tracing.trace_of({"traceparent": f"00-{TRACE}-{SPAN}-{flags}"})
    assert given is not None
    wanted = {"traceparent": f"00-{TRACE}-{SPAN}-01"} if taken else None
    assert tracing.goes_on("tr.placed", given) == wanted


async def test_a_producer_s_span_is_below_the_caller_s_and_says_how_it_failed(received: Collector) -> None:
    assert tracing.is_on()
    carried: list[tracing.Carrier | None] = []

    def shop() -> None:
        with trace.get_tracer("of the user").start_as_current_span("shop"):
            with tracing.producing(START, "tr.send", "public"):
                carried.append(tracing.current())
                raise ConnectionError("away")

    with pytest.raises(ConnectionError):
        shop()
    await arrived(received, "shop", "start tr.send")
    span = received.one("start tr.send")
    assert (span.parent, span.failed) == (received.one("shop").id, True)
    assert carried == [{"traceparent": f"00-{span.trace}-{span.id}-01"}]


async def test_an_unsampled_start_carries_nothing_of_its_caller(
    received: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    given = tracing.trace_of({"traceparent": f"00-{TRACE}-{SPAN}-01"})
    with tracing.inside(given), tracing.producing(START, "tr.send", "public"):
        assert tracing.current() is None
