"""Traces: the propagation of their context, and the export of spans. Only this room knows OpenTelemetry. If tracing
is off (`switch`), each of these functions returns at once and imports nothing.

Not here: the contents of spans. The code that ends an event, execution or step builds its span from the rows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from penstock.tracing.carrier import Carrier, Trace, trace_of
from penstock.tracing.spans import PUBLISH, Span
from penstock.tracing.switch import is_switched_on

if TYPE_CHECKING:
    from penstock.tracing.export import Exporting

__all__ = [
    "Carrier",
    "Span",
    "Trace",
    "begins",
    "current",
    "describe_process",
    "flush",
    "goes_on",
    "inside",
    "is_on",
    "producing",
    "received",
    "send",
    "set_up",
    "trace_of",
]

_PROCESS: dict[str, str] = {}
"""Attributes of the resource of this process's spans."""
NOTHING: AbstractContextManager[None] = nullcontext()


@cache
def exporting() -> Exporting | None:
    """Return the exporter of this process's spans; None if tracing is off. The exporter is created once."""
    if not is_switched_on():
        return None
    from penstock.tracing.export import Exporting

    return Exporting(_PROCESS)


def describe_process(runner_id: str, runner_name: str | None) -> None:
    """Name this process on the spans that it sends. The names have an effect only before the first span."""
    _PROCESS["penstock.runner_id"] = runner_id
    if runner_name is not None:
        _PROCESS["penstock.runner_name"] = runner_name


def set_up() -> None:
    """Set up tracing in this process, unless it is off. Logs a warning if tracing is requested but not installed.

    Spans that other code creates afterwards are exported too, and Penstock's spans are placed below them.
    """
    exporting()


def is_on() -> bool:
    """Return True if this process traces."""
    return exporting() is not None


def current() -> Carrier | None:
    """Return the caller's current span, as the context for what the caller causes; None if it is not sampled."""
    exporter = exporting()
    return None if exporter is None else exporter.current()


def begins(name: str, span_id: int) -> Carrier | None:
    """Begin a trace with this span, which the caller sends, and return its context; None if the sampler rejects it."""
    exporter = exporting()
    trace = None if exporter is None else exporter.begins(name, span_id)
    return None if trace is None else trace.carrier()


def goes_on(name: str, trace: Trace) -> Carrier | None:
    """Return the context of a trace that a foreign program has begun; None if the sampler rejects it."""
    exporter = exporting()
    return (
        replace(trace, sampled=True).carrier()
        if exporter is not None and exporter.takes(name, trace)
        else None
    )


def producing(kind: str, ref: str, tenant: str) -> AbstractContextManager[None]:
    """Return a context manager for the span of a producer, PUBLISH or START; the span is current inside the block."""
    exporter = exporting()
    if exporter is None:
        return NOTHING
    of = "penstock.trigger" if kind == PUBLISH else "penstock.action"
    return exporter.producing(f"{kind} {ref}", {of: ref, "penstock.tenant": tenant})


def inside(trace: Trace | None) -> AbstractContextManager[None]:
    """Return a context manager that makes this span current, so that spans of the block nest below it."""
    exporter = exporting()
    return NOTHING if exporter is None or trace is None else exporter.inside(trace)


def received(headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Return a context manager that continues the trace in the headers of a request."""
    exporter = exporting()
    return NOTHING if exporter is None else exporter.received(headers)


def send(*spans: Span) -> None:
    """Send spans that are over."""
    exporter = exporting()
    if exporter is not None:
        for span in spans:
            exporter.send(span)


async def flush() -> None:
    """Send the queued spans before the process ends, within five seconds."""
    exporter = exporting()
    if exporter is not None:
        await asyncio.to_thread(exporter.flush)
