"""Patterns of schemas. Whoever defines something writes them, and they are run on what anybody sends, by processes that have
other work: one that backtracks without end (`^(a|aa)+$`) would hold up all of it. So the searches of one check have a time
together, and a value that takes longer does not fit.

By `regex` in the place of `re`, which cannot be stopped; what `re` takes means the same there."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from penstock.errors import InvalidInput

if TYPE_CHECKING:
    import regex

MOST = 0.2
"""Seconds of computing that all the searches of one check may take. Others take microseconds."""


class _Check(threading.local):
    left: float | None = None
    """Seconds that are left for the check that this thread is at; None where it is at none."""

    def __enter__(self) -> None:
        self.left = MOST

    def __exit__(self, *_: object) -> None:
        self.left = None


one_check = _Check()
"""As a context: what is searched in it, by this thread, has one time together."""


@lru_cache(1024)
def compiled(pattern: str) -> regex.Pattern[str]:
    """Raises ValueError for what is no pattern."""
    import regex  # not for commands that check nothing

    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise ValueError(str(error)) from None


def fits(pattern: str, text: str) -> bool:
    """Whether the pattern is found in the text. Raises InvalidInput where that takes too long to say."""
    return found(compiled(pattern), text)


def found(pattern: regex.Pattern[str], text: str) -> bool:
    """The same for who keeps the pattern compiled."""
    left = MOST if one_check.left is None else one_check.left
    began = time.thread_time()
    try:
        if left > 0:
            return pattern.search(text, timeout=left) is not None
    except TimeoutError:
        pass
    finally:
        if one_check.left is not None:
            one_check.left = left - (time.thread_time() - began)
    raise InvalidInput(
        f"a text of {len(text):,} characters takes too long to be held against the pattern {pattern.pattern!r}",
        hint="Send shorter and fewer ones, or have the pattern repeat nothing that has two ways: not (a|aa)+ but a+.",
    )


def may_fit(pattern: str, text: str) -> bool:
    """The same for who would rather say yes too often: where it takes too long, it may."""
    try:
        return fits(pattern, text)
    except InvalidInput:
        return True


Faults = Iterator[ValidationError]


def _pattern(validator: Any, pattern: str, value: Any, schema: Mapping[str, Any]) -> Faults:
    if isinstance(value, str) and not fits(pattern, value):
        yield ValidationError(f"does not match {pattern!r}")


def _pattern_properties(
    validator: Any, schemas: Mapping[str, Any], value: Any, schema: Mapping[str, Any]
) -> Faults:
    if isinstance(value, dict):
        for pattern, one in schemas.items():
            for name in value:
                if fits(pattern, name):
                    yield from validator.descend(value[name], one, path=name, schema_path=pattern)


def _additional_properties(validator: Any, one: Any, value: Any, schema: Mapping[str, Any]) -> Faults:
    if not isinstance(value, dict):
        return
    known, named = schema.get("properties", {}), schema.get("patternProperties", {})
    others = [
        name for name in value if name not in known and not any(fits(pattern, name) for pattern in named)
    ]
    if one is False and others:
        yield ValidationError(f"unknown: {', '.join(others)}")
    elif isinstance(one, Mapping):
        for name in others:
            yield from validator.descend(value[name], one, path=name)


_KEYWORDS: dict[str, Callable[[Any, Any, Any, Mapping[str, Any]], Faults]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
}
BoundedValidator: type[Validator] = extend(Draft202012Validator, _KEYWORDS)  # type: ignore[no-untyped-call]
"""jsonschema's, for texts from outside."""
