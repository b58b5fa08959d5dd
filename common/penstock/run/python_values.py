"""The conversion of Python values to JSON: of results, parameters, payloads and all else that code hands over."""

from __future__ import annotations

import dataclasses
import inspect
from datetime import UTC, date, datetime, time
from enum import Enum
from typing import Any

import orjson
from pydantic import BaseModel

_OPTIONS = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
"""The types that `converted` converts. orjson itself leaves out fields of a dataclass that begin with an underscore. It
adds attributes that are not fields, and cuts the seconds off an offset from UTC."""


def to_json(value: object, option: int = 0) -> bytes:
    """Return `value` as JSON. Dataclasses, pydantic models, datetimes, UUIDs and enums are converted.

    NaN and Infinity become null. Raises TypeError, with the reason, for a value that is not JSON.
    """
    try:
        return orjson.dumps(value, default=converted, option=_OPTIONS | option)
    except (TypeError, ValueError, RecursionError) as error:  # orjson's own error is a TypeError
        raise TypeError(_reason(error)) from None


def converted(value: object) -> Any:
    """Return the JSON value of a dataclass, a pydantic model, a date or a time, one level deep. A model has its aliases, as
    in its schema. Raises TypeError for any other value."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        serializer = getattr(value, "__pydantic_serializer__", None)
        if serializer is not None:
            return serializer.to_python(value, mode="json", by_alias=True)
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if type(value) is datetime:
        offset = value.utcoffset()
        if offset is not None and offset.total_seconds() % 60:
            value = value.astimezone(UTC)  # RFC 3339 has offsets of whole minutes
        return value.isoformat()
    if type(value) is date or (type(value) is time and value.tzinfo is None):
        return value.isoformat()
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError(
            "it is a coroutine, which was not awaited. A decorator of an async function has to await it"
        )
    raise TypeError(f"{type(value).__qualname__} is not JSON")


def opened(node: object) -> object:
    """Return what JSON has in the place of an enum, a dataclass or a pydantic model, one level deep. Other values are
    returned unchanged."""
    while isinstance(node, Enum):
        node = node.value
    is_object = isinstance(node, BaseModel) or (dataclasses.is_dataclass(node) and not isinstance(node, type))
    return converted(node) if is_object else node


def _reason(error: Exception) -> str:
    """Return the reason why a value is not JSON. An error of `converted` that says more than the type is the reason."""
    inner = error.__cause__
    if isinstance(inner, TypeError | ValueError) and not str(inner).endswith(" is not JSON"):
        return str(inner)
    return str(error)
