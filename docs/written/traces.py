"""docs/reference/traces.md: each span, and its attributes."""

from __future__ import annotations

from penstock.tracing.spans import ATTRIBUTES, SPANS

HEAD = """# Traces

This page is written by `docs/written` from `penstock.tracing.spans`. [How to switch tracing on](../how-to/tracing.md).

All spans of what an event or a start has caused are in one trace. Ids of spans are made of the ids of what they tell of
([decision 23](../decisions/0023-traces-live-in-rows.md)), so whoever sends a span has to know nothing of who began it. A process that
dies may take the spans with it that it has not sent; a batch that is handled again may send some of its spans again, under the same ids.

| span | kind | below | lasts |
|---|---|---|---|
"""
LINKS = """
**Links.** The span of a task's execution is linked to those of the tasks that it came after (the first hundred, of a task with many
items): a join has several. That of a re-run is linked to the execution that it runs once more. A re-run, a fire of a schedule, and an
event from outside without a `traceparent` or from a poll trigger each begin a trace, if the sampler takes it.

**Errors.** A span has the status `Error`, with the message, where an execution did not complete, an attempt or a step failed, or the
parameters of a rule could not be rendered.

**Clocks.** The span of an execution is timed by the database's clock, all others by that of the process that sends them.

**Where it is carried.** `traceparent` and `tracestate` ([W3C Trace Context](https://www.w3.org/TR/trace-context/)) come with the headers
of an event over AMQP or of a request to the API, or with the current span of a Python client. They are kept in the rows of events and
executions, and go on to actions: as the current span in `async`, `thread` and `process`, as headers of `http`, as `TRACEPARENT` and
`TRACESTATE` in the environment of commands and Kubernetes jobs. What is not sampled carries nothing.

## Attributes

| attribute | what it is | of |
|---|---|---|
"""


def page() -> str:
    """Return the text of the page."""
    spans = "".join(f"| `{one.name}` | {one.kind} | {one.above} | {one.lasts} |\n" for one in SPANS.values())
    return HEAD + spans + LINKS + "".join(_attribute(name, said) for name, said in ATTRIBUTES.items())


def _attribute(name: str, said: str) -> str:
    spans = ", ".join(kind for kind, one in SPANS.items() if name in one.attributes)
    return f"| `{name}` | {said} | {spans} |\n"
