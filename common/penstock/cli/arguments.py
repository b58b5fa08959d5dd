"""The parsing of values and parameters from the command line."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import typer

from penstock.errors import InvalidInput
from penstock.language.terms.durations import positive_seconds
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import parse_label_words
from penstock.run import instants
from penstock.run.cut_texts import cut_end
from penstock.run.json_integers import parsed_by_hand

SHOWN = 60
"""The number of characters of a value that an error shows."""


def parse_value(word: str) -> Any:
    """Return a word as its JSON value if it is JSON, or else as text. Raises InvalidInput for JSON that cannot be kept: an
    integer of more than 64 bits, or an object with a name twice."""
    try:
        return parsed_by_hand(word, f"the value {cut_end(word, SHOWN)}")
    except orjson.JSONDecodeError:
        return word


def parse_id(word: str) -> UUID:
    """Return the id of an execution, an event or a dead letter. Raises BadParameter for another word, such as a part of an id."""
    try:
        return UUID(word)
    except ValueError:
        raise typer.BadParameter(
            f"{word!r} is not an id, such as 0198c7a2-5b1e-7c3d-9f4a-2d6e8b0c1f35. Lists on pages show "
            "only the last 8 characters of an id. The page of the object shows the whole id."
        ) from None


def parse_duration(option: str, word: str) -> float:
    """Return the value of an option such as `30s`, `5m` or `90` in seconds. Raises InvalidInput that names the option."""
    try:
        return positive_seconds(_number(word) or word)
    except Wrong as wrong:
        raise InvalidInput(f"{option} {wrong}", hint=wrong.hint) from None


def parse_delay(option: str, word: str) -> float:
    """Return the value of an option as parse_duration does; 0 is permitted."""
    return 0.0 if _number(word) == 0 else parse_duration(option, word)


def _number(word: str) -> float | None:
    """Return a word that is a plain number, which is in seconds, or None."""
    try:
        return float(word)
    except ValueError:
        return None


def parse_instant(option: str, word: str, zone: tzinfo = UTC) -> datetime:
    """Return the value of an option such as `2030-01-31T09:00`, in `zone` if it has no offset. Raises InvalidInput that names
    the option."""
    try:
        instant = instants.instant(word)
    except instants.WrongInstant as wrong:
        raise InvalidInput(f"{option} {word!r} is not an instant: {wrong}", hint=instants.HINT) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=zone)


def parse_params(words: list[str]) -> dict[str, Any]:
    """Return `name=value` words as parameters. A value is JSON if it parses as JSON, or else text. `@FILE` stands for
    an object in a file, and later words replace its values. Raises InvalidInput for a word of another form, and for a
    name in two words."""
    params: dict[str, Any] = {}
    names = set[str]()
    for word in words:
        if word.startswith("@"):
            params |= _from_file(word[1:])
            continue
        name, separator, value = word.partition("=")
        if not separator or not name:
            raise InvalidInput(f"{word!r} is not name=value", hint="Write for example: order=7 name=Ada")
        if name in names:
            raise InvalidInput(f"{name} has two values", hint=f"Leave out one of the words {name}=...")
        names.add(name)
        params[name] = parse_value(value)
    return params


def without_line_break(text: str) -> str:
    """Return the text of a pipe without the single line break with which `echo` and editors end it."""
    return text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text


def label_option(words: list[str] | None, option: str = "--label") -> dict[str, str] | None:
    """Return the labels of `--label key=value`, or another option; None without any. Raises InvalidInput for a word
    that is not `key=value`, or not a valid label."""
    try:
        return parse_label_words(words) if words else None
    except Wrong as wrong:
        raise InvalidInput(f"{option} {wrong}", hint=wrong.hint) from None


def _from_file(path: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text()
        loaded = parsed_by_hand(text, path)
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"{path}: {error}", hint="Name a readable file that holds a JSON object."
        ) from None
    if not isinstance(loaded, dict):
        raise InvalidInput(
            f"{path} does not hold a JSON object", hint='It should look like {"name": "value"}.'
        )
    return loaded
