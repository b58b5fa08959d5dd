"""Whatever somebody else writes into a message: it can be kept as a dead letter, and reading it takes little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.messaging import envelope
from penstock.messaging.transports import Delivery
from penstock.store.session.storable import storable
from penstock_executor.handlers.dead_letter import letter_of

DEEP = 200_000
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.datetimes()
    | st.decimals(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(
    (
        "x-death",
        "x-penstock-reason",
        "x-penstock-queue",
        "x-first-death-queue",
        "x-first-death-reason",
        "tenant",
        "a",
    )
)


@settings(max_examples=150)
@given(st.dictionaries(NAMES | st.text(), VALUES, max_size=5), st.binary(max_size=30), st.none() | st.text())
def test_any_headers_make_a_letter_that_postgresql_takes(
    headers: dict[str, Any], body: bytes, text: str | None
) -> None:
    letter = letter_of(Delivery("dead", body, None, id=text, type=text, headers=headers))
    for kept in (letter.queue, letter.reason, letter.type, letter.message_id):
        assert kept is None or "\0" not in storable(kept)
    assert not any("\0" in text for text in texts(orjson.loads(orjson.dumps(storable(letter.headers)))))


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, one in value.items():
            yield name
            yield from texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, str):
        yield value


def test_the_memory_that_an_envelope_takes_is_bounded() -> None:
    from penstock.errors import Undecodable

    for body in (b"[" * DEEP, b'{"v":1,"type":"x","ids":[' + b"0," * 10**6 + b"0]}", b'{"v":1e999999999}'):
        with pytest.raises(Undecodable):
            envelope.decode(body)
