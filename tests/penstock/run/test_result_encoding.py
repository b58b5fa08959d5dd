from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from enum import Enum
from functools import cached_property
from uuid import UUID

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter
from pydantic.dataclasses import dataclass as pydantic_dataclass

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


class Customer(BaseModel):
    customer_id: int = Field(alias="customerId")


@pydantic_dataclass
class Parcel:
    parcel_id: int = Field(alias="parcelId")


@dataclass
class Record:
    name: str
    _revision: int = 0

    @cached_property
    def label(self) -> str:
        return self.name.upper()


class Unknown(BaseModel):
    value: object


class NotFinite(Enum):
    NAN = float("nan")
    SEVERAL = (1.0, float("inf"))


def test_model_has_the_aliases_of_its_schema() -> None:
    value = {"customer": Customer(customerId=7), "parcels": [Parcel(parcelId=8)]}
    assert result_encoding.encode(value) == b'{"customer":{"customerId":7},"parcels":[{"parcelId":8}]}'
    assert "customerId" in TypeAdapter(Customer).json_schema(mode="serialization")["properties"]


def test_dataclass_has_all_of_its_fields_and_nothing_else() -> None:
    record = Record("ada", 3)
    assert record.label == "ADA"
    assert result_encoding.encode([record]) == b'[{"name":"ada","_revision":3}]'


@pytest.mark.parametrize("value", [NotFinite.NAN, [NotFinite.NAN], {"a": NotFinite.SEVERAL}, Record])
def test_enum_of_nan_and_class_are_refused(value: object) -> None:
    with pytest.raises(ResultNotStorable):
        result_encoding.encode(value)


def test_offset_with_seconds_keeps_its_instant() -> None:
    before_standard_time = datetime(1900, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=53, seconds=28)))
    text = orjson.loads(result_encoding.encode(before_standard_time))
    assert datetime.fromisoformat(text) == before_standard_time
    plain = [datetime(2030, 1, 1), datetime(2030, 1, 1, tzinfo=UTC), date(2030, 1, 1), time(1, 2, 3, 4)]
    assert result_encoding.encode(plain) == orjson.dumps(plain)


def test_value_inside_a_model_is_named_by_the_refusal() -> None:
    with pytest.raises(ResultNotStorable, match="Unable to serialize unknown type: <class 'object'>"):
        result_encoding.encode(Unknown(value=object()))


@pytest.mark.filterwarnings("error")
def test_coroutine_that_was_not_awaited_is_named() -> None:
    async def later() -> int:
        return 1

    with pytest.raises(ResultNotStorable, match="it is a coroutine, which was not awaited"):
        result_encoding.encode(later())
