"""docs/reference/traces.md: each span, and its attributes."""

from __future__ import annotations

from penstock.tracing.spans import ATTRIBUTES, SPANS

HEAD = """# Traces

This page is written by `docs/written` from `penstock.tracing.spans`. To turn tracing on, see [tracing](../how-to/tracing.md).

One trace contains all spans that an event or a start has caused. The id of a span is computed from the id of its row, such as the
execution ([decision 23](../decisions/0023-traces-live-in-rows.md)). So the process that sends a span needs no data from the process that
began it. If a process dies, spans that it has not sent may be lost. If a batch is handled again, some spans may be sent twice, under the
same ids.

| span | kind | parent | duration |
|---|---|---|---|
"""
LINKS = """
**Links.** The span of a task's execution is linked to the spans of the tasks before it. For a task with items, the first hundred items are
linked. The span of a rerun is linked to the span of the first run. A new trace begins with a rerun, a fire of a schedule, an event of a
poll trigger, and an event from outside without a `traceparent`, if the sampler selects it.

**Errors.** A span has the status `Error` and the message if its execution did not complete, its attempt or step failed, or the parameters
of its rule could not be computed.

**Clocks.** The times of an execution's span come from the clock of the database. The times of all other spans come from the clock of the
process that sends them.

**Propagation.** Penstock reads `traceparent` and `tracestate` ([W3C Trace Context](https://www.w3.org/TR/trace-context/)) from the
headers of an AMQP event or an API request. From a Python client, it takes the current span. The context is stored with events and
executions, and passed on to actions:

- as the current span in the task executors `async`, `thread` and `process`,
- as headers of requests of `http`,
- as `TRACEPARENT` and `TRACESTATE` in the environment of commands and Kubernetes jobs.

An execution that is not sampled passes on no context.

## Attributes

| attribute | meaning | spans |
|---|---|---|
"""


def page() -> str:
    """Return the text of the page."""
    spans = "".join(f"| `{one.name}` | {one.kind} | {one.above} | {one.lasts} |\n" for one in SPANS.values())
    return HEAD + spans + LINKS + "".join(_attribute(name, said) for name, said in ATTRIBUTES.items())


def _attribute(name: str, said: str) -> str:
    spans = ", ".join(kind for kind, one in SPANS.items() if name in one.attributes)
    return f"| `{name}` | {said} | {spans} |\n"
