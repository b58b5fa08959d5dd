"""The wire format."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import Undecodable
from penstock.language.terms.ids import new_id
from penstock.messaging import envelope, messages


def test_an_envelope_survives_the_wire() -> None:
    ids = [new_id() for _ in range(20)]
    assert envelope.decode(envelope.encode("execution.requested", ids)).ids == ids


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"v": 2, "type": "x", "ids": []}',
        b'{"v": 1, "type": "x", "ids": ["no"]}',
        b"\xff",
        b"1" * 10000,
    ],
)
def test_a_text_that_is_not_an_envelope_is_undecodable(body: bytes) -> None:
    with pytest.raises(Undecodable, match="not an envelope of version 1"):
        envelope.decode(body)


@given(st.binary(max_size=300))
def test_no_body_does_anything_but_decode_or_be_refused(body: bytes) -> None:
    with contextlib.suppress(Undecodable):
        assert envelope.decode(body).ids


def test_a_message_carries_a_correlation_and_a_trace_that_is_not_sampled() -> None:
    first = new_id()
    made = messages.message(7, "work.gpu", [first, new_id()])
    assert (made.type, made.correlation_id, made.id) == ("work", str(first), "outbox-7")
    version, trace, span, flags = made.headers["traceparent"].split("-")
    assert (version, trace, len(span), flags) == ("00", first.hex, 16, "00")
