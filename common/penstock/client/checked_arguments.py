"""The check of the arguments of client methods against their annotated types, before the method runs.

A program without a type checker may pass a text for an id, or a naive datetime. Without this check the database driver
or the HTTP library would refuse the value later. Its message would name neither the parameter nor a remedy.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache, wraps
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from penstock.errors import InvalidInput
from penstock.language.terms.action_ref import ActionCall
from penstock.language.terms.column_ranges import MAX_AMOUNT
from penstock.run.durations import HINT, WrongDuration, seconds

T = TypeVar("T", bound=type)
BIGGEST = 2**31 - 1
"""The largest integer of a parameter: that of PostgreSQL's `integer`. Methods check narrower ranges themselves."""
LONGEST_S = 1e10
"""The largest number of seconds of a parameter, positive or negative: some 300 years."""


class _Kind(NamedTuple):
    takes: Callable[[Any], bool]
    name: str
    hint: str


def is_text(value: Any) -> bool:
    """Return whether `value` is a text that PostgreSQL and JSON can store."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def _is_id(value: Any) -> bool:
    if isinstance(value, UUID):
        return True
    try:
        return isinstance(value, str) and bool(UUID(value))
    except ValueError:
        return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= BIGGEST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= LONGEST_S


def _is_startable(value: Any) -> bool:
    return is_text(value) or isinstance(value, ActionCall) or is_text(getattr(value, "ref", None))


def _is_time(value: Any) -> bool:
    return _is_number(value) or is_text(value) or isinstance(value, timedelta)


def _is_instant(value: Any) -> bool:
    return isinstance(value, datetime) and value.tzinfo is not None and 1 < value.year < 9999


def _is_list_of(takes: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Sequence) and not isinstance(value, str) and all(map(takes, value))


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _is_mapping_of_texts(value: Any) -> bool:
    return _is_mapping(value) and all(is_text(name) and is_text(item) for name, item in value.items())


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MAX_AMOUNT


def _is_mapping_of_amounts(value: Any) -> bool:
    return _is_mapping(value) and all(is_text(unit) and _is_amount(amount) for unit, amount in value.items())


def _is_filter(value: Any) -> bool:
    from penstock.store.executions.execution_list import ExecutionFilter  # imported only for such a parameter

    return isinstance(value, ExecutionFilter)


def _is_schedule(value: Any) -> bool:
    from penstock.language.definitions import Schedule

    return isinstance(value, Schedule)


_TEXT = _Kind(is_text, "text without NUL characters", "Give a str.")
_ID = _Kind(_is_id, "the id of an execution", "Give the UUID that `start` returned.")
_STARTABLE = _Kind(_is_startable, "an action or a workflow", "Give its ref, such as shop.charge, or itself.")
_MAPPING = _Kind(_is_mapping, "a mapping", "Give a dict with a value by each name.")
KINDS: Mapping[str, _Kind] = {
    "str": _TEXT,
    "UUID": _ID,
    "bool": _Kind(lambda value: isinstance(value, bool), "true or false", "Give True or False."),
    "int": _Kind(_is_whole, f"a whole number up to {BIGGEST:,}", "Give an int."),
    "float": _Kind(_is_number, "a finite number of seconds", "Give an int or a float."),
    "float | timedelta | str": _Kind(_is_time, "a time", 'Give seconds, a timedelta, or text such as "5s".'),
    "datetime": _Kind(
        _is_instant, "an instant with an offset", "Give datetime(2030, 1, 31, 9, tzinfo=UTC), for example."
    ),
    "Startable": _STARTABLE,
    "str | ActionRef[..., Any] | Workflow": _STARTABLE,
    "Mapping[str, Any]": _MAPPING,
    "Mapping[str, str]": _Kind(
        _is_mapping_of_texts, "a mapping of texts", "Give a dict with a name by each name."
    ),
    "Amount": _Kind(_is_amount, "an amount above 0 and at most 10^15", "Give an int or a float."),
    "Mapping[str, Amount]": _Kind(
        _is_mapping_of_amounts,
        "a mapping of amounts",
        "Give a dict with an amount by each unit, {'tokens': 100000}.",
    ),
    "Sequence[Mapping[str, Any]]": _Kind(
        _is_list_of(_is_mapping), "a list of mappings", "Give a list with a dict for each execution."
    ),
    "Sequence[str]": _Kind(_is_list_of(is_text), "a list of texts", "Give a list of names."),
    "ExecutionFilter": _Kind(_is_filter, "a filter of executions", "Give ExecutionFilter(...)."),
    "Schedule": _Kind(_is_schedule, "a schedule", "Give Schedule(...)."),
}
"""The checks, by the annotation of a parameter. `| None` permits None as well."""
UNCHECKED = ("Any",)
"""The annotations of parameters that methods check themselves: values that are sent as JSON, connections."""


class _Parameters:
    """The checked parameters of a method, by position and name."""

    def __init__(self, method: Callable[..., Any]) -> None:
        parameters = list(inspect.signature(method).parameters.values())[1:]
        kinds = {parameter.name: _kind_of(str(parameter.annotation)) for parameter in parameters}
        self.by_name = kinds
        self._by_place = [
            (parameter.name, kinds[parameter.name])
            for parameter in parameters
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        self._variadic = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)

    def check(self, arguments: Sequence[Any], named: Mapping[str, Any]) -> None:
        for (name, kind), value in zip(self._by_place, arguments, strict=False):
            _check(name, kind, value)
        if self._variadic is not None:
            for value in arguments[len(self._by_place) :]:
                _check(self._variadic, self.by_name[self._variadic], value)
        for name, value in named.items():
            _check(name, self.by_name.get(name), value)


def _kind_of(annotation: str) -> tuple[_Kind, bool] | None:
    """Return the check for an annotation, and whether it permits None. Return None for an unchecked annotation."""
    if annotation in UNCHECKED:
        return None
    plain = annotation.removesuffix(" | None")
    return KINDS[plain], plain != annotation


def _check(name: str, expected: tuple[_Kind, bool] | None, value: Any) -> None:
    if expected is None:
        return
    kind, is_optional = expected
    if value is None and is_optional:
        return
    if not kind.takes(value):
        excerpt = ascii(value)
        excerpt = excerpt if len(excerpt) <= 60 else f"{excerpt[:60]}..."
        raise InvalidInput(f"the {name} is not {kind.name}: {excerpt}", hint=kind.hint)


@cache
def _parameters(method: Callable[..., Any]) -> _Parameters:
    return _Parameters(method)  # at the first call, so that an import stays quick


def check_options(method: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Check options that are passed on to a method. Raise InvalidInput for a wrong type, and for an option that the
    method does not take."""
    parameters = _parameters(inspect.unwrap(method))
    for name in options:
        if name not in parameters.by_name:
            from penstock.language.terms.options import did_you_mean  # loads pydantic

            raise InvalidInput(
                f"{method.__name__} takes no option {name!r}", hint=did_you_mean(name, parameters.by_name)
            )
    parameters.check((), options)


def checks_arguments(owner: T) -> T:
    """Wrap each public coroutine method of a class, except `close`, in a check of its arguments' types. A wrong type raises
    InvalidInput. A client with a method `_check_usable` is checked by it, too."""
    for name, method in list(vars(owner).items()):
        if not name.startswith("_") and name != "close" and inspect.iscoroutinefunction(method):
            setattr(owner, name, _checked(method))
    return owner


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def call(*arguments: Any, **named: Any) -> Any:
        if (check_usable := getattr(arguments[0], "_check_usable", None)) is not None:
            check_usable()
        _parameters(method).check(arguments[1:], named)
        return await method(*arguments, **named)

    return cast(Callable[..., Any], call)


def timeout_seconds(timeout: float | timedelta | str | None) -> float | None:
    """Return a timeout in seconds, or None. Raises InvalidInput for a value that is not a duration."""
    try:
        return None if timeout is None else seconds(timeout)
    except WrongDuration as wrong:
        raise InvalidInput(f"the timeout {wrong}", hint=HINT) from None
