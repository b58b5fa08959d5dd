"""The encodings of values in the query, the form, the headers and the cookies of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

import orjson

from penstock.language.definitions.http_request import HttpEncoding

SEPARATORS = {"form": ",", "simple": ",", "spaceDelimited": " ", "pipeDelimited": "|"}
Escape = Callable[[str], str]


def escaped(text: str) -> str:
    """Return a text percent-encoded, but for letters, digits and `-._~` (RFC 3986, 2.3)."""
    return quote(text, safe="")


def plain(text: str) -> str:
    """Return the text itself. Headers and the parts of multipart bodies are not escaped."""
    return text


def text_of(value: Any) -> str:
    """Return the text of a value: `true`, an empty text for null, and JSON for lists and mappings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    return orjson.dumps(value).decode()


def escaped_pairs(values: Mapping[str, Any], encodings: Mapping[str, HttpEncoding]) -> Iterator[str]:
    """Yield the parts `name=value` of a query or a URL-encoded form."""
    for name, value in values.items():
        if (encoding := encodings.get(name)) is None:
            for key, text in pairs({name: value}):
                yield f"{quote_plus(key)}={quote_plus(text)}"
        elif encoding.style is None:
            for text in json_items(value):
                yield f"{quote_plus(name)}={quote_plus(text)}"
        else:
            for key, text in styled(name, value, encoding, escaped):
                yield f"{key}={text}"


def styled(name: str, value: Any, encoding: HttpEncoding, escape: Escape) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a value in its style. Null and empty lists give nothing, as in RFC 6570."""
    assert encoding.style is not None
    if isinstance(value, Mapping):
        members = [
            (escape(str(key)), escape(text_of(item))) for key, item in value.items() if item is not None
        ]
        if encoding.explode and encoding.style == "simple":
            texts = [f"{key}={text}" for key, text in members]
        elif encoding.explode:
            yield from members
            return
        else:
            texts = [text for member in members for text in member]
    elif isinstance(value, list | tuple):
        texts = [escape(text_of(item)) for item in value if item is not None]
        if encoding.explode and encoding.style != "simple":
            yield from ((escape(name), text) for text in texts)
            return
    else:
        texts = [] if value is None else [escape(text_of(value))]
    if texts:
        separator = SEPARATORS[encoding.style]
        yield escape(name), (separator if separator == "," else escape(separator)).join(texts)


def joined(values: Sequence[Any]) -> str:
    """Return the escaped texts of a list with commas between them, as a part of a path has them."""
    return ",".join(escaped(text_of(value)) for value in values if value is not None)


def json_items(value: Any) -> Iterator[str]:
    """Yield a value as JSON. A list gives the JSON of each item."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if item is not None:
            yield orjson.dumps(item).decode()


def pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and texts of values without an encoding. A list gives its name several times, and null gives nothing. A
    mapping gives `name[key]`, and a list inside of it `name[key][0]`. A list with mappings or lists in it gives `name[0]`,
    as the fields of two items would be one list otherwise."""
    for name, value in values.items():
        items = value if isinstance(value, list | tuple) else (value,)
        if items is value and any(isinstance(item, Mapping | list | tuple) for item in items):
            yield from _nested(name.removesuffix("[]"), items)
            continue
        for item in items:
            yield from _nested(name, item)


def _nested(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nested(f"{name}[{key}]", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _nested(f"{name}[{number}]", item)
    elif value is not None:
        yield name, text_of(value)
