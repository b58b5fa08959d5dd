"""The types of fields that answers show in another form: each is shown so, and read back as it was."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
import pytest
from pydantic import TypeAdapter

from penstock.store.session.http_field_types import (
    HexOrNull,
    Item,
    JsonObject,
    JsonText,
    JsonTextOrNull,
    Seconds,
)


@dataclass
class Record:
    labels: JsonText
    error: JsonTextOrNull
    age: Seconds
    item: Item


@dataclass
class Sealed:
    details: JsonObject
    seal: HexOrNull


RECORDS = TypeAdapter(Record)


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        (
            Record('{"zone":"a"}', '"text"', timedelta(seconds=1.5), 3),
            {"labels": {"zone": "a"}, "error": "text", "age": 1.5, "item": 3},
        ),
        (
            Record("[1,null]", None, timedelta(0), -1),
            {"labels": [1, None], "error": None, "age": 0, "item": None},
        ),
    ],
)
def test_record_is_shown_and_read_back(record: Record, answer: dict[str, Any]) -> None:
    shown = orjson.loads(RECORDS.dump_json(record))
    assert shown == answer
    assert RECORDS.validate_python(shown) == record


def test_sealed_row_is_shown_as_object_and_digits() -> None:
    sealed = TypeAdapter(Sealed)
    assert sealed.dump_python(Sealed('{"max":3}', b"\x0f\xa0")) == {"details": {"max": 3}, "seal": "0fa0"}
    assert sealed.dump_python(Sealed("{}", None)) == {"details": {}, "seal": None}
