"""The stored form of parameters that refer to secrets. The stored form holds no secret: each reference is stored as the
text that was written, and `$secrets` lists the places of the references, part by part. Callers may not send `$secrets`.

Only a definition, or an explicit argument of `start`, can make a reference. A payload with the text `{{ secrets.x }}`
is text.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import orjson

from penstock.errors import InvalidInput
from penstock.language.expressions import SecretName, SecretText
from penstock.language.schemas import Schema
from penstock.language.terms.outside_names import SECRET

KEY = "$secrets"
Place = tuple[str | int, ...]


def checked_parameters(schema: Schema, params: Any, cap: int) -> bytes:
    """Return the stored form of parameters, after a check against the schema. Raises InvalidInput if they do not fit
    the schema, or have more than `cap` bytes."""
    encoded = schema.check(params, cap=cap)
    if KEY.encode() in encoded and isinstance(params, Mapping) and KEY in params:
        raise InvalidInput(f"no parameter may be called {KEY}", hint="Choose another name.")
    if b"{{ secrets." not in encoded:
        return encoded
    references = [[list(place), _written(text)] for place, text in _references(params)]
    if not references:
        return encoded
    return orjson.dumps({**orjson.loads(encoded), KEY: references}, option=orjson.OPT_SORT_KEYS)


def referring(params: Mapping[str, Any], names: Mapping[str, str] | None) -> Mapping[str, Any]:
    """Return the parameters with a reference to a secret for each entry of `names`, which maps parameters to names of
    secrets. Raises InvalidInput if the name of a secret is not valid, or a parameter is also given by value."""
    if not names:
        return params
    for parameter, name in names.items():
        if not SECRET.fullmatch(name):
            raise InvalidInput(f"{name!r} is not a valid name of a secret", hint="Use a-z, A-Z, 0-9 and _.")
        if parameter in params:
            raise InvalidInput(
                f"{parameter} has both a value and a secret", hint="Give either the value or the secret."
            )
    return {**params, **{p: SecretText.of((SecretName(n),)) for p, n in names.items()}}


def without_references(params: Any) -> Any:
    """Return stored parameters without the list of references, for display."""
    if isinstance(params, Mapping) and KEY in params:
        return {name: value for name, value in params.items() if name != KEY}
    return params


def with_references(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return stored parameters as expressions see them, in which references stay references."""
    return replaced(params, SecretText.of) if KEY in params else params


def names_in(params: Mapping[str, Any]) -> set[str]:
    """Return the names of the secrets that stored parameters refer to."""
    return {part["secret"] for _, parts in params.get(KEY, ()) for part in parts if isinstance(part, dict)}


def replaced(params: Mapping[str, Any], value: Callable[[list[str]], str]) -> dict[str, Any]:
    """Return stored parameters with each reference replaced by `value` of its parts."""
    result: dict[str, Any] = copy.deepcopy(without_references(params))
    for place, parts in params.get(KEY, ()):
        *path, last = place
        inner: Any = result
        for step in path:
            inner = inner[step]
        inner[last] = value([SecretName(p["secret"]) if isinstance(p, dict) else p for p in parts])
    return result


def put_back(value: Any, names: Mapping[str, str]) -> Any:
    """Return `value` with a reference in place of each text that is a secret's value. So a value that code passes on
    is stored as the reference that it was.

    `names` maps the secrets' values to their names, longest value first.
    """
    if isinstance(value, str):
        parts: list[str] = [value]
        for text, name in names.items():
            parts = [piece for part in parts for piece in _split(part, text, name)]
        return SecretText.of(parts) if len(parts) > 1 or isinstance(parts[0], SecretName) else value
    if isinstance(value, Mapping):
        return {key: put_back(inner, names) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [put_back(inner, names) for inner in value]
    return value


def _split(part: str, text: str, name: str) -> Iterator[str]:
    if isinstance(part, SecretName):
        yield part
        return
    for n, piece in enumerate(part.split(text)):
        if n:
            yield SecretName(name)
        if piece:
            yield piece


def _written(text: SecretText) -> list[Any]:
    return [{"secret": str(part)} if isinstance(part, SecretName) else part for part in text.parts]


def _references(value: Any, place: Place = ()) -> Iterator[tuple[Place, SecretText]]:
    if isinstance(value, SecretText):
        yield place, value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _references(inner, (*place, name))
    elif isinstance(value, list | tuple):
        for n, inner in enumerate(value):
            yield from _references(inner, (*place, n))
