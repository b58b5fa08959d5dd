"""The filters of a list of executions, as users write them: over HTTP, on the pages, in commands and in saved views."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.language.moves import STATUSES
from penstock.language.terms.durations import seconds
from penstock.language.terms.options import Wrong, did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.language.terms.run_labels import parse_label_words
from penstock.run import instants
from penstock.run.cut_texts import cut_end
from penstock.store.executions.execution_list import ExecutionFilter
from penstock.store.session.noted_clock import noted

NAMES = (
    *("status", "action", "tenant", "since", "until", "event", "parent", "children", "label", "key"),
    *("waits_for_answer", "paused"),
)
"""The filters of a list. They have the same names over HTTP, on the pages, as options of commands and in saved views."""
LISTS, INSTANTS, IDS, FLAGS = (
    ("status", "label"),
    ("since", "until"),
    ("event", "parent"),
    ("children", "waits_for_answer", "paused"),
)
"""The filters with several texts, with an instant or an age, with an id, and those that are on or off. The others are texts."""
Clock = Callable[[], datetime]
INSTANT_HINT = "Write an age, such as 1h, or an instant, such as 2030-01-31T09:00. Without an offset, an instant is in UTC."
NOT_STATUSES = {
    "paused": "The status of a workflow does not change with its pause. Use the filter paused: --paused, or paused=true.",
    "held": "The status of an execution does not change with a hold. `penstock holds` lists what is held.",
}
"""The hints for words that are shown beside a status, and are none."""
SEPARATOR = re.compile(r",|\s+(?=[^\s,=]+=)")
"""A comma, or the space before the next `key=`. The value of a label may have spaces."""


def checked(filters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filters that are set, in the form in which they are stored: JSON, with an age as a text. Raises
    InvalidInput."""
    for name in filters:
        if name not in NAMES:
            raise InvalidInput(
                f"there is no filter {cut_end(ascii(name), 50)}", hint=did_you_mean(str(name), NAMES)
            )
    values = {name: filters[name] for name in NAMES if filters.get(name) not in (None, False)}
    return {name: _checked(name, value) for name, value in values.items()}


def _checked(name: str, value: Any) -> Any:
    if value in ("", [], ()):
        raise InvalidInput(f"the filter {name} is empty", hint=f"Leave out {name}, or give it a value.")
    if name in FLAGS:
        if value is not True:
            raise _wrong_type(name, value, "true or false")
        return True
    if name in LISTS:
        words = [value] if isinstance(value, str) else value
        if not isinstance(words, Sequence) or not all(isinstance(word, str) for word in words):
            raise _wrong_type(name, value, "a list of texts")
        (check_statuses if name == "status" else labels_of)(words)
        return list(dict.fromkeys(words))
    if name in INSTANTS and isinstance(value, datetime):
        return instant(name, value.isoformat()).isoformat()
    if name in IDS and isinstance(value, UUID):
        return str(value)
    if not isinstance(value, str) or not _is_stored(value):
        raise _wrong_type(name, value, "a text without NUL characters")
    if name in INSTANTS:
        instant(name, value)
    if name == "tenant":
        check_tenant(value)
    return str(_id(name, value)) if name in IDS else value


def _is_stored(text: str) -> bool:
    """Return whether PostgreSQL can store a text."""
    try:
        return "\0" not in text and bool(text.encode())
    except UnicodeEncodeError:
        return False


def _wrong_type(name: str, value: Any, expected: str) -> InvalidInput:
    return InvalidInput(
        f"{name} is not {expected}: {cut_end(ascii(value), 50)}",
        hint=f"Give {expected}, or leave {name} out.",
    )


def execution_filter(filters: Mapping[str, Any], now: Clock = noted) -> ExecutionFilter:
    """Return the filter that these filters describe at this moment: an age counts back from `now()`. Raises
    InvalidInput."""
    values = checked(filters)
    ages = {name: instant(name, values[name], now) for name in INSTANTS if name in values}
    ids = {name: UUID(values[name]) for name in IDS if name in values}
    labels = labels_of(values.pop("label", ()))
    return ExecutionFilter(**{**values, **ages, **ids}, labels=labels)


def instant(name: str, text: str, now: Clock = noted) -> datetime:
    """Return an age (`1h`) or an instant in ISO 8601 as an instant. Without an offset it is in UTC. `name` is the name of the
    filter. An age counts back from `now()`. Raises InvalidInput for any other text."""
    try:
        age = timedelta(seconds=seconds(text))
    except ValueError:
        age = None
    if age is not None:
        return now() - age
    try:
        at = instants.instant(text)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput(
            f"{name}: {cut_end(text, 50)!r} is neither an instant nor an age", hint=INSTANT_HINT
        ) from None


def check_statuses(words: Sequence[str]) -> None:
    """Raise InvalidInput for a word that is not a status of executions."""
    if unknown := sorted(set(words) - set(STATUSES)):
        hints = [hint for word, hint in NOT_STATUSES.items() if word in unknown]
        raise InvalidInput(
            f"unknown status {', '.join(repr(cut_end(word, 50)) for word in unknown[:20])}",
            hint=" ".join([*hints, f"Available: {', '.join(STATUSES)}."]),
        )


def labels_of(words: Sequence[str]) -> dict[str, str] | None:
    """Return the labels of `key=value` words; None without any. Raises InvalidInput."""
    try:
        return parse_label_words(words) or None
    except Wrong as wrong:
        raise InvalidInput(f"label {wrong}", hint=wrong.hint) from None


def _id(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            f"{cut_end(text, 50)!r} is not an id, which {name} needs",
            hint="Copy the id from the page of that object.",
        ) from None


def label_words(text: str) -> list[str]:
    """Return the `key=value` words of a field."""
    return [word.strip() for word in SEPARATOR.split(text) if word.strip()]


def from_texts(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the filters of the address or of the fields of a page, where each is one text. An empty text is not
    a filter. Raises InvalidInput."""
    filters: dict[str, Any] = {}
    for name, text in texts.items():
        if not text:
            continue
        if name == "status":
            filters[name] = [word for word in text.split(",") if word]
        elif name == "label":
            filters[name] = label_words(text)
        elif name in FLAGS and text in ("true", "false"):
            filters[name] = text == "true"
        else:
            filters[name] = text
    return checked(filters)


def as_texts(filters: Mapping[str, Any]) -> dict[str, str]:
    """Return checked filters with one text each, as `from_texts` reads them."""
    return {
        name: "true"
        if value is True
        else ",".join(map(str, value))
        if isinstance(value, list)
        else str(value)
        for name, value in filters.items()
    }
