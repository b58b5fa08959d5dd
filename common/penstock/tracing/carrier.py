"""The carriers of a trace: a W3C trace context in headers and in rows, and the ids of spans. A trace context is a
`traceparent`, and a `tracestate` if there is one. The id of a span is a hash of the id that it describes. So any process
knows the span of an execution without having begun it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

Carrier = dict[str, str]
"""`traceparent` and perhaps `tracestate`, as W3C Trace Context spells them."""

TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
STATE_LIMIT = 512
"""Characters of a `tracestate` that are carried on, as W3C asks at least. A longer one is left out."""
SAMPLED = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace, and the span in it that what follows belongs under."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str = ""

    @property
    def hex(self) -> str:
        """The id of the trace, as people and backends write it."""
        return f"{self.trace_id:032x}"

    def carrier(self, span_id: int | None = None) -> Carrier:
        """To go on under this span, or under another one of the same trace."""
        own = self.span_id if span_id is None else span_id
        headers = {"traceparent": f"00-{self.trace_id:032x}-{own:016x}-{int(self.sampled):02x}"}
        return {**headers, "tracestate": self.state} if self.state else headers


def trace_of(carried: Mapping[str, Any] | None) -> Trace | None:
    """The trace of headers, or of what a row holds; None where there is none, or none that W3C would take for one."""
    if not carried:
        return None
    match = TRACEPARENT.fullmatch(str(carried.get("traceparent", "")))
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    if not trace_id or not span_id:
        return None
    state = carried.get("tracestate") or ""
    fits = isinstance(state, str) and len(state) <= STATE_LIMIT and state.isprintable()
    return Trace(trace_id, span_id, bool(flags & SAMPLED), state if fits else "")


def span_id(kind: str, *of: object) -> int:
    """The id of the span of this kind that tells of something with these ids: the same in every process, and never 0."""
    text = "/".join((kind, *map(str, of))).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") or 1
