"""The context of a trace in headers and in rows, and the ids of spans. A context is a W3C `traceparent`, and a
`tracestate` if there is one. The id of a span is a hash of the id that it describes. So any process knows the id of
an execution's span without having begun it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

Carrier = dict[str, str]
"""`traceparent` and, if set, `tracestate`, as W3C Trace Context defines them."""

TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?")
STATE_LIMIT = 512
"""The longest `tracestate` that is propagated, in characters: the minimum that W3C requires. A longer one is left
out."""
SAMPLED = 1


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace, and the span in it that is the parent of what follows."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str = ""

    @property
    def hex(self) -> str:
        """Return the id of the trace, as users and backends write it."""
        return f"{self.trace_id:032x}"

    def carrier(self, span_id: int | None = None) -> Carrier:
        """Return the context for children of this span, or of another span of the same trace."""
        own = self.span_id if span_id is None else span_id
        headers = {"traceparent": f"00-{self.trace_id:032x}-{own:016x}-{int(self.sampled):02x}"}
        return {**headers, "tracestate": self.state} if self.state else headers


def trace_of(carried: Mapping[str, Any] | None) -> Trace | None:
    """Return the trace in headers or in a row; None if there is none, or it is not valid by W3C."""
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
    """Return the id of the span of this kind for an object with these ids. The id is equal in every process, and never
    0."""
    text = "/".join((kind, *map(str, of))).encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "big") or 1
