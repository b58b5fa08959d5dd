"""The types of fields that answers over HTTP show in another form than rows have, and that clients read back."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import orjson
from pydantic import BeforeValidator, Field, PlainSerializer


def _text(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()


def _value(text: str | None) -> Any:
    return None if text is None else orjson.loads(text)


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def _number(item: int | None) -> int:
    return -1 if item is None else item


def _item(number: int) -> int | None:
    return None if number == -1 else number


JsonText = Annotated[str, BeforeValidator(_text), PlainSerializer(_value, return_type=Any)]
"""A field with a JSON text. An answer shows the value that the text encodes."""
JsonTextOrNull = Annotated[str | None, BeforeValidator(_text), PlainSerializer(_value, return_type=Any)]
JsonObject = Annotated[str, PlainSerializer(orjson.loads, return_type=dict[str, Any])]
HexOrNull = Annotated[bytes | None, PlainSerializer(_hex, return_type=str | None)]
"""A field with bytes. An answer shows their hexadecimal digits."""
Seconds = Annotated[timedelta, PlainSerializer(timedelta.total_seconds, return_type=float)]
"""A field with a length of time. An answer shows its seconds."""
Item = Annotated[
    int,
    BeforeValidator(_number),
    PlainSerializer(_item, return_type=int | None),
    Field(description="The number of the item, for a task with items; else null."),
]
"""The number of an item, or -1. An answer has null instead of -1."""
