from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from penstock.errors import InvalidInput
from penstock.language.schemas import DEPTH_CAP, check_value


class Colour(enum.Enum):
    RED = "red"


class Model(BaseModel):
    at: datetime


class Tags(BaseModel):
    tags: set[int]


@dataclass
class Point:
    x: int


def test_a_json_value_is_taken_with_keys_in_order_and_no_spaces() -> None:
    assert check_value({"b": [1, 2.5, None, True], "a": "ü"}) == '{"a":"ü","b":[1,2.5,null,true]}'.encode()


def test_a_python_value_with_a_json_form_is_taken_too() -> None:
    at = datetime(2030, 1, 2, tzinfo=UTC)
    value = {
        "at": at,
        "id": UUID(int=7),
        "point": Point(1),
        "model": Model(at=at),
        "colour": Colour.RED,
        "t": (1,),
    }
    assert orjson.loads(check_value(value)) == {
        "at": "2030-01-02T00:00:00+00:00",
        "id": str(UUID(int=7)),
        "point": {"x": 1},
        "model": {"at": "2030-01-02T00:00:00Z"},
        "colour": "red",
        "t": [1],
    }


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"b": [1, math.nan]}}, "at a.b[1] is NaN or Infinity"),
        ({"a": -math.inf}, "at a is NaN or Infinity"),
        ({"model": Point(math.nan)}, "at model.x is NaN"),  # type: ignore[arg-type]
        ({"a": ["x", "y\0z"]}, "at a[1] holds a NUL"),
        ({"a": {"k\0": 1}}, "at a holds a NUL"),
        ({"a": {1, 2}}, "at a is not JSON"),
        ({"a": object(), "model": Tags(tags={1})}, "at a is not JSON"),
        ({"a": [object()]}, "at a[0] is not JSON"),
        ({"a": b"bytes"}, "at a is not JSON"),
        ({"a": {1: 2}}, "at a is not JSON"),
        ({"a": 2**64}, "at a is not JSON"),
        ({"a": "\ud800"}, "at a is not JSON"),
        (nested(DEPTH_CAP + 1), f"deeper than {DEPTH_CAP}"),
        ([[], {}, nested(DEPTH_CAP)], f"deeper than {DEPTH_CAP}"),
        ({"a": {"b": nested(DEPTH_CAP - 1)}}, f"deeper than {DEPTH_CAP}"),
        (nested(5000), "nests too deep"),
        (CYCLE, "nests too deep"),
        ("x" * 2000, "bytes of JSON; at most 1,000"),
    ],
)
def test_a_definition_that_cannot_be_stored_is_refused(value: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match="parameters") as raised:
        check_value(value, 1000, what="parameters")
    assert message in raised.value.message
    assert raised.value.hint


@pytest.mark.parametrize(
    "value",
    [
        None,
        [None],
        {"a": None},
        "null",
        r"\u0000",
        "a\\u0000b",
        nested(DEPTH_CAP),
        "[" * 500,
        [[], {}, nested(DEPTH_CAP - 1)],
        {"a": {}, "b": {"c": nested(DEPTH_CAP - 2)}},
    ],
)
def test_a_value_that_only_looks_suspicious_is_taken(value: Any) -> None:
    assert orjson.loads(check_value(value)) == value


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    )
)
def test_a_value_comes_back_as_it_was_or_is_refused(value: Any) -> None:
    try:
        encoded = check_value(value)
    except InvalidInput:
        return
    assert orjson.loads(encoded) == value
    assert b"\0" not in encoded


def test_value_that_is_itself_no_number_has_no_place() -> None:
    with pytest.raises(InvalidInput, match=r"^the answer is NaN or Infinity"):
        check_value(math.nan, what="the answer")


class Customer(BaseModel):
    customer_id: int = Field(alias="customerId")


class Unknown(BaseModel):
    value: object


class NotFinite(enum.Enum):
    NAN = math.nan


@dataclass
class Record:
    name: str
    _revision: int = 0


def test_object_is_stored_as_its_schema_and_its_fields_say() -> None:
    value = {"customer": Customer(customerId=7), "record": Record("ada", 3)}
    assert check_value(value) == b'{"customer":{"customerId":7},"record":{"_revision":3,"name":"ada"}}'


def test_place_of_nan_in_an_enum_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"the value at rates\[1\] is NaN or Infinity"):
        check_value({"rates": [1.0, NotFinite.NAN]})


def test_place_of_a_model_that_is_not_json_is_named() -> None:
    with pytest.raises(
        InvalidInput, match=r"the value at a\[0\] is not JSON: Unable to serialize unknown type"
    ):
        check_value({"a": [Unknown(value=object())]})
