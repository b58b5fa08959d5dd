"""The texts that are taken for a trace context, and its form further on."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.language.terms.ids import new_id
from penstock.tracing import trace_of
from penstock.tracing.carrier import STATE_LIMIT
from penstock.tracing.spans import ATTRIBUTES, SPANS, attempt_span, execution_span

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GIVEN = f"00-{TRACE}-{SPAN}-01"


def test_a_context_goes_on_as_it_came() -> None:
    carried = {"traceparent": GIVEN, "tracestate": "shop=1,bank=2"}
    trace = trace_of(carried)
    assert trace is not None
    assert (trace.hex, trace.sampled, trace.carrier()) == (TRACE, True, carried)
    assert trace.carrier(1)["traceparent"] == f"00-{TRACE}-0000000000000001-01"


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    trace = trace_of({"traceparent": f"01-{TRACE}-{SPAN}-03-more"})
    assert trace is not None
    assert trace.carrier() == {"traceparent": GIVEN}


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"traceparent": 7},
        {"traceparent": ""},
        {"traceparent": GIVEN.upper()},
        {"traceparent": f"00-{TRACE}-{SPAN}"},
        {"traceparent": f"00-{'0' * 32}-{SPAN}-01"},
        {"traceparent": f"00-{TRACE}-{'0' * 16}-01"},
        {"traceparent": f"ff-{TRACE}-{SPAN}-01"},
        {"traceparent": GIVEN + "\n"},
    ],
)
def test_an_invalid_trace_context_is_left_alone(given: Any) -> None:
    assert trace_of(given) is None


@pytest.mark.parametrize("state", [b"shop=1", "shop=\n1", "x" * (STATE_LIMIT + 1), 7])
def test_a_state_that_cannot_go_on_is_left_out(state: Any) -> None:
    trace = trace_of({"traceparent": GIVEN, "tracestate": state})
    assert trace is not None
    assert trace.carrier() == {"traceparent": GIVEN}


def test_a_span_has_the_same_id_in_every_process_and_no_other_has_it() -> None:
    id = new_id()
    ids = [execution_span(id), *(attempt_span(id, n) for n in range(1, 4)), execution_span(new_id())]
    assert execution_span(id) == ids[0]
    assert len(set(ids)) == len(ids)
    assert all(0 < one < 2**64 for one in ids)


def test_every_attribute_is_described_and_every_described_one_is_of_some_span() -> None:
    assert {name for span in SPANS.values() for name in span.attributes} == ATTRIBUTES.keys()
