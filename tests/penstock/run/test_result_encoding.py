from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock.errors import ResultNotStorable
from penstock.run import result_encoding

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


class Colour(Enum):
    RED = "red"


class Order(BaseModel):
    price: float
    at: datetime | None = None


@dataclass
class Point:
    x: float


def test_usual_python_results_are_understood() -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    value = {
        "point": Point(1.5),
        "order": Order(price=2.5, at=at),
        "colour": Colour.RED,
        "id": UUID(int=7),
        "tuple": (1, None),
    }
    assert result_encoding.encode(value) == (
        b'{"point":{"x":1.5},"order":{"price":2.5,"at":"2030-01-01T00:00:00Z"},"colour":"red",'
        b'"id":"00000000-0000-0000-0000-000000000007","tuple":[1,null]}'
    )


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1: "a number as a key"},
        {"set": {1}},
        b"bytes",
        2**64,
        "\ud800",
        float("nan"),
        [float("inf")],
        {"deep": [{"x": -float("inf")}]},
        Point(float("nan")),
        Order(price=float("nan")),
        "a\0b",
        {"a\0b": 1},
    ],
)
def test_a_result_that_postgresql_could_not_return_is_refused(value: object) -> None:
    with pytest.raises(ResultNotStorable):
        result_encoding.encode(value)


def test_nesting_without_end_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(ResultNotStorable):
        result_encoding.encode(endless)


def test_a_backslash_before_u0000_is_only_text() -> None:
    assert result_encoding.encode("\\u0000") == b'"\\\\u0000"'
    assert result_encoding.check(b'"\\\\u0000"') == b'"\\\\u0000"'


def test_null_is_not_taken_for_nan() -> None:
    assert result_encoding.encode([None, "null", 1.5]) == b'[null,"null",1.5]'


def test_the_limit_is_in_bytes() -> None:
    assert result_encoding.encode("üü", 6) == '"üü"'.encode()
    with pytest.raises(ResultNotStorable, match="6 bytes"):
        result_encoding.encode("üü", 5)


@pytest.mark.parametrize("text", [b"", b"{", b"NaN", b"1 2", b'"\\u0000"', b'"\\ud800"', b"1e400", b"\xff"])
def test_json_from_elsewhere_is_checked(text: bytes) -> None:
    with pytest.raises(ResultNotStorable):
        result_encoding.check(text)


def test_json_from_elsewhere_is_kept_as_it_is() -> None:
    assert (
        result_encoding.check(b' {"a": 1.50, "b": 18446744073709551615} \n')
        == b'{"a": 1.50, "b": 18446744073709551615}'
    )


def test_numbers_that_postgresql_could_not_hold_are_written_as_doubles() -> None:
    assert result_encoding.check(b"[1e-20000, 2]") == b"[0.0,2]"
    assert result_encoding.check(b"0." + b"0" * 20000 + b"1") == b"0.0"


@given(JSON)
def test_whatever_is_stored_comes_back_or_is_refused(value: object) -> None:
    try:
        encoded = result_encoding.encode(value)
    except ResultNotStorable:
        return
    assert result_encoding.check(encoded) == encoded
    assert b"NaN" not in encoded or "NaN" in repr(value)
