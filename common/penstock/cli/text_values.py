"""Values of the command line that a schema wants as text, although they are JSON, such as number=123."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.cli.arguments import parse_value
from penstock.errors import InvalidInput, PenstockError
from penstock.language.schemas import wants_text

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient

T = TypeVar("T")
SchemaReader = Callable[[], Awaitable[Mapping[str, Any] | None]]
"""A function that reads the schema of the values; None if there is no schema. The function is called only after a
refusal."""
_INDEX = re.compile(r"\[(\d+)\]")


async def send_as_typed(
    send: Callable[[dict[str, Any]], Awaitable[T]],
    values: Mapping[str, Any],
    words: Sequence[str],
    read_schema: SchemaReader,
) -> T:
    """Send the values of `name=value` words. If they are refused, send them once more, with each value as text that only
    fits its schema as text. Raises InvalidInput if they are refused again. The hint of the error
    shows the quotes if the schema cannot be read."""
    pairs = [word.partition("=") for word in words if not word.startswith("@")]
    texts = {name: value for name, _, value in pairs if not isinstance(parse_value(value), str)}
    try:
        return await send(dict(values))
    except InvalidInput as error:
        if not texts:
            raise
        schema = await _read(read_schema)
        if schema is None:
            name, word = next(iter(texts.items()))
            _add_quoting(error, f"{name}=", word)
            raise
        changed = {
            name: word
            for name, word in texts.items()
            if wants_text(parse_value(word), _path(name, schema), schema)
        }
        if not changed:
            raise
        return await send({**values, **changed})


async def send_one_as_typed(
    send: Callable[[Any], Awaitable[T]], word: str, read_schema: SchemaReader
) -> tuple[T, Any]:
    """Send the value of one word, as `send_as_typed`. Return the answer and the value that was sent."""
    value = parse_value(word)
    try:
        return await send(value), value
    except InvalidInput as error:
        if isinstance(value, str):
            raise
        schema = await _read(read_schema)
        if schema is None:
            _add_quoting(error, "", word)
            raise
        if not wants_text(value, (), schema):
            raise
        return await send(word), word


def _add_quoting(error: InvalidInput, name: str, word: str) -> None:
    """Add to the hint of an error how to quote a value on the command line, so that it is sent as text."""
    if word[:1] not in '{["':
        quoting = f"""The value is JSON. For the text, write {name}'"{word}"'."""
        error.hint = f"{error.hint} {quoting}" if error.hint else quoting


async def schema_of(client: AnyClient, kinds: Sequence[str], ref: str) -> Mapping[str, Any] | None:
    """Return the schema of the parameters of an action or a workflow, or of the payload of a trigger; None for none."""
    word = "schema" if "trigger" in kinds else "parameters"
    return next((row["definition"].get(word) for row in await client.definitions(kinds, ref)), None)


async def _read(read_schema: SchemaReader) -> Mapping[str, Any] | None:
    """Return the schema, or None if it is not known or the token may not read it."""
    try:
        return await read_schema()
    except PenstockError:
        return None


def _path(name: str, schema: Mapping[str, Any]) -> list[str | int]:
    """Return the path of a name such as `number`, `customer.name` or `lines[1].sku`, as `rerun --set` takes it."""
    if name in schema.get("properties", {}):
        return [name]
    return [int(step) if step.isdecimal() else step for step in _INDEX.sub(r".\1", name).split(".")]
