"""The only module that uses OpenTelemetry. It is imported only if tracing is on."""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from opentelemetry import context, propagate, trace
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, SpanKind, Status, StatusCode, TraceFlags
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.span import TraceState

from penstock.errors import ConfigurationError
from penstock.tracing.carrier import Carrier, Trace
from penstock.tracing.spans import Kind, Span

SCOPE = "penstock"
KINDS: Mapping[Kind, SpanKind] = {
    "internal": SpanKind.INTERNAL,
    "producer": SpanKind.PRODUCER,
    "consumer": SpanKind.CONSUMER,
}
W3C = TraceContextTextMapPropagator()
PATIENCE = 5.0
"""Seconds that the process waits for a collector at its end. The processor's own timeouts are too long: it tries each
batch for ten seconds."""


class Exporting:
    """The exporter of this process's spans. Current spans of the caller's own become parents. If the process has not
    set up OpenTelemetry itself, spans that its code creates are exported here, too."""

    def __init__(self, process: Mapping[str, str] | None = None) -> None:
        """`process`: attributes of the process, for each of its spans."""
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {SERVICE_NAME: "penstock"}
        resource = Resource.create({**named, **(process or {})})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._processor = BatchSpanProcessor(_exporter())
        self._provider.add_span_processor(self._processor)
        if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
            trace.set_tracer_provider(self._provider)
        self._given_up = False
        atexit.register(self.close)

    def current(self) -> Carrier | None:
        """Return the current span as a carrier; None if it is not sampled."""
        if not trace.get_current_span().get_span_context().trace_flags.sampled:
            return None
        carrier: Carrier = {}
        W3C.inject(carrier)
        return carrier or None

    def producing(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Return a context manager for a span around the caller's block, below its current span. The sampler decides
        first: most spans are not sampled, and cost nothing more."""
        above = trace.get_current_span().get_span_context()
        trace_id = above.trace_id if above.is_valid else self._new_trace_id()
        if self._samples(trace_id, name, context.get_current()):
            parent = Trace(trace_id, above.span_id, True, above.trace_state.to_header())
            return self._around(name, attributes, parent)
        if above.is_valid and above.trace_flags.sampled:  # sampled by the caller's own sampler
            return self.inside(Trace(trace_id, above.span_id, False))
        return nullcontext()

    @contextmanager
    def _around(self, name: str, attributes: Mapping[str, Any], parent: Trace) -> Iterator[None]:
        began, error = datetime.now(UTC), None
        own = replace(parent, span_id=self._provider.id_generator.generate_span_id())
        try:
            with self.inside(own):
                yield
        except BaseException as failed:
            error = f"{type(failed).__name__}: {failed}"
            raise
        finally:
            end = datetime.now(UTC)
            span = Span(
                name,
                "producer",
                own,
                own.span_id,
                parent.span_id or None,
                began,
                end,
                attributes,
                (),
                error,
            )
            self.send(span)

    @contextmanager
    def inside(self, trace: Trace) -> Iterator[None]:
        """Make a span of this or another process current for the block."""
        token = context.attach(_current(trace))
        try:
            yield
        finally:
            context.detach(token)

    @contextmanager
    def received(self, headers: Mapping[str, str]) -> Iterator[None]:
        """Continue the trace in the headers of an HTTP request, for the block."""
        token = context.attach(propagate.extract(headers))
        try:
            yield
        finally:
            context.detach(token)

    def begins(self, name: str, span_id: int) -> Trace | None:
        """Return a new trace with this span as its root; None if the sampler rejects it."""
        trace_id = self._new_trace_id()
        return Trace(trace_id, span_id, True) if self._samples(trace_id, name, context.Context()) else None

    def takes(self, name: str, parent: Trace) -> bool:
        """Return True if the sampler accepts a trace that a foreign program has begun. By default it follows that
        program."""
        return self._samples(parent.trace_id, name, _current(parent))

    def _new_trace_id(self) -> int:
        return self._provider.id_generator.generate_trace_id()

    def _samples(self, trace_id: int, name: str, of: context.Context) -> bool:
        verdict = self._provider.sampler.should_sample(of, trace_id, name)
        return verdict.decision is Decision.RECORD_AND_SAMPLE

    def send(self, span: Span) -> None:
        """Send a span that is over."""
        own = _context(span.trace, span.id, remote=False)
        self._processor.on_end(
            ReadableSpan(
                span.name,
                context=own,
                parent=None if span.parent is None else _context(span.trace, span.parent),
                resource=self._provider.resource,
                attributes={name: value for name, value in span.attributes.items() if value is not None},
                links=[Link(_context(link, link.span_id)) for link in span.links],
                kind=KINDS[span.kind],
                status=Status(StatusCode.UNSET if span.error is None else StatusCode.ERROR, span.error),
                start_time=_nanoseconds(span.began_at),
                end_time=max(_nanoseconds(span.ended_at), _nanoseconds(span.began_at)),
                instrumentation_scope=InstrumentationScope(SCOPE),
            )
        )

    def flush(self) -> None:
        """Send the queued spans, within PATIENCE seconds. If a collector takes longer, the exit does not wait for it
        either."""
        sending = threading.Thread(target=self._provider.force_flush, daemon=True)
        sending.start()
        sending.join(PATIENCE)
        self._given_up = sending.is_alive()

    def close(self) -> None:
        atexit.unregister(self.close)
        if not self._given_up:
            self._provider.shutdown()


def _exporter() -> SpanExporter:
    name = os.environ.get("OTEL_TRACES_EXPORTER", "").strip().lower() or "otlp"
    if name == "console":
        return ConsoleSpanExporter()
    if name != "otlp":
        raise ConfigurationError(
            f"there is no exporter {name!r} for traces", hint="OTEL_TRACES_EXPORTER is otlp, console or none."
        )
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _current(of: Trace) -> context.Context:
    return trace.set_span_in_context(NonRecordingSpan(_context(of, of.span_id)))


def _context(of: Trace, span_id: int, *, remote: bool = True) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if of.sampled else TraceFlags.DEFAULT)
    state: Sequence[str] = [of.state] if of.state else []
    return SpanContext(of.trace_id, span_id, remote, flags, TraceState.from_header(list(state)))


def _nanoseconds(at: datetime) -> int:
    # With integers: a float of seconds is exact to a quarter of a microsecond only.
    whole = at.replace(microsecond=0)
    return int(whole.timestamp()) * 1_000_000_000 + at.microsecond * 1_000
