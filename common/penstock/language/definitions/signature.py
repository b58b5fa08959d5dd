"""The parameters of a function: their schema, and the conversion of an execution's parameters to keyword arguments."""

from __future__ import annotations

import copy
import inspect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, is_dataclass
from types import UnionType
from typing import Annotated, Any, NotRequired, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python
from typing_extensions import TypedDict

from penstock.errors import InvalidInput
from penstock.language.definitions.durable_functions import context_parameter
from penstock.language.schemas import parameters_schema, schema_of_type
from penstock.language.schemas.secrets import is_secret_at
from penstock.language.schemas.storable_json import check_value
from penstock.language.terms.options import Wrong, did_you_mean, problems
from penstock.language.terms.sources import Source
from penstock.run.batch_item import Item
from penstock.run.steering import Steering

Bind = Callable[[Mapping[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Signature:
    parameters: dict[str, Any]
    """The JSON Schema of the parameters."""
    result: dict[str, Any] | None
    """The JSON Schema of the result, or None without a return annotation."""
    bind: Bind
    """The function that turns an execution's parameters into keyword arguments. Raises InvalidInput."""
    durable: bool = False
    """True if the first parameter takes a DurableContext."""


def signature_of(
    function: Callable[..., Any], ref: str, source: Source, names: Mapping[str, Any] | None = None
) -> Signature:
    """Return the signature that the annotations of a function declare. `names` are the names visible where the function
    was defined, for annotations with local names. Raises DefinitionError for a parameter that cannot be given by name,
    or an annotation without a schema."""
    hints = _hints(function, ref, source, names)
    fields: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    open_ended = False
    context = context_parameter(function, hints)
    if context is not None and not inspect.iscoroutinefunction(inspect.unwrap(function)):
        raise source.wrong(f"action {ref}: a durable function awaits what it does", "Write async def.")
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == context:
            continue
        match parameter.kind:
            case parameter.POSITIONAL_ONLY | parameter.VAR_POSITIONAL:
                raise source.wrong(
                    f"action {ref}: parameter {parameter.name!r} can only be given by position",
                    "Parameters of an action are given by name: remove the '/' or the '*args'.",
                )
            case parameter.VAR_KEYWORD:
                if parameter.name in hints:
                    raise source.wrong(
                        f"action {ref}: **{parameter.name} has a type, which would not be checked",
                        "Name the parameters, or take it without an annotation.",
                    )
                open_ended = True
                continue
        hint = hints.get(parameter.name, Any)
        if isinstance(parameter.default, FieldInfo):
            raise source.wrong(
                f"action {ref}: the default of {parameter.name!r} is a Field",
                f"Write {parameter.name}: Annotated[int, Field(ge=1)] = 3, which also works in a plain call.",
            )
        if parameter.default is not parameter.empty:
            defaults[parameter.name] = parameter.default
            hint = NotRequired[hint]
        fields[parameter.name] = hint

    try:
        adapter, schema = _typed(fields, open_ended)
        returns = _returned(hints["return"]) if "return" in hints else Any
        result = schema_of_type(returns, mode="serialization") or None
    except Wrong as error:
        raise source.wrong(f"action {ref}: {error}", error.hint) from None
    for name, default in defaults.items():
        _show_default(schema["properties"][name], default)
    bind = _with_fresh_defaults(_binder(adapter, schema, ref), defaults)
    return Signature(schema, result, bind, durable=context is not None)


_ITEMS = "Write def embed(items: list[Item[Text]]) -> list[float], where Text is a dataclass, a model or a TypedDict."


def batch_signature_of(
    function: Callable[..., Any], ref: str, source: Source, names: Mapping[str, Any] | None = None
) -> Signature:
    """Return the signature of a function that takes a list of items: the parameters of one item, and its result. `bind`
    returns the validated parameters of one item as its argument `input`. Raises DefinitionError if the function does
    not take one list of items and return a list."""
    hints = _hints(function, ref, source, names)
    if context_parameter(function, hints) is not None:
        raise source.wrong(f"action {ref}: a durable function takes no batches", "Leave batch out.")
    parameters = list(inspect.signature(function).parameters.values())
    kind = _item_of(hints.get(parameters[0].name)) if len(parameters) == 1 else None
    if kind is None:
        raise source.wrong(
            f"action {ref}: a function with a batch takes one parameter, a list of items",
            _ITEMS,
        )
    returns = _result_of(hints["return"]) if "return" in hints else Any
    if returns is None:
        raise source.wrong(
            f"action {ref}: a function with a batch returns a list with one result for each item",
            "Write its return annotation as list[float].",
        )
    try:
        schema = parameters_schema(kind)
        if not schema.get("properties"):
            raise Wrong(f"the items name no parameters: {kind}", _ITEMS)
        result = schema_of_type(_returned(returns, Exception), mode="serialization") or None
    except Wrong as error:
        raise source.wrong(f"action {ref}: {error}", error.hint) from None
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    bind = _binder(adapter, schema, ref)
    return Signature(schema, result, lambda params: {"input": bind(params)})


def _item_of(hint: Any) -> Any:
    """Return the type of an item's parameters in `list[Item[Text]]`, or None if the annotation is another one."""
    items = get_args(hint) if get_origin(hint) is list else ()
    return get_args(items[0])[0] if items and get_origin(items[0]) is Item else None


def _result_of(hint: Any) -> Any:
    """Return the type of one result in `list[float]`, or None if the annotation is not of a list."""
    arguments = get_args(hint)
    if hint in (list, Any):
        return Any
    return arguments[0] if get_origin(hint) in (list, Sequence) else None


def _hints(
    function: Callable[..., Any], ref: str, source: Source, names: Mapping[str, Any] | None
) -> dict[str, Any]:
    try:
        return get_type_hints(inspect.unwrap(function), localns=dict(names or {}), include_extras=True)
    except Exception as error:  # evaluating an annotation may raise anything
        raise source.wrong(
            f"action {ref}: an annotation cannot be evaluated: {error}",
            "Import the names that annotations use outside of `if TYPE_CHECKING`.",
        ) from None


def _typed(fields: dict[str, Any], open_ended: bool) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Return a TypedDict of the parameters, and its schema. Unlike a model it takes any name (`json`, `copy`,
    `model_x`), and its values are dicts."""
    typed = TypedDict("Parameters", fields)  # type: ignore[misc]
    typed.__pydantic_config__ = ConfigDict(extra="allow" if open_ended else "forbid")  # type: ignore[attr-defined]
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(typed)
    except (PydanticSchemaGenerationError, PydanticUserError):
        for name, hint in fields.items():  # one by one, so that the error can name the parameter
            try:
                schema_of_type(get_args(hint)[0] if get_origin(hint) is NotRequired else hint)
            except Wrong as error:
                raise Wrong(f"parameter {name!r} {error}", error.hint) from None
        raise
    return adapter, schema_of_type(adapter)


def _returned(hint: Any, without: type[Exception] = Steering) -> Any:
    """Return the type of the result, which is the return annotation without the types of `without`: `Defer`, `AskInquiry` and
    the other steering types."""
    if isinstance(hint, type) and issubclass(hint, without):
        return Any
    if get_origin(hint) in (Union, UnionType):
        members = [
            member
            for member in get_args(hint)
            if not (isinstance(member, type) and issubclass(member, without))
        ]
        return Union[tuple(members)] if members else Any  # noqa: UP007 (a union of what is only known now)
    return Any if get_origin(hint) is Annotated and not get_args(hint) else hint


def _show_default(schema: dict[str, Any], default: Any) -> None:
    if schema.get("secret") or schema.get("writeOnly"):
        return
    try:
        stored = to_jsonable_python(default)
        check_value(stored)
        schema["default"] = stored
    except (
        Exception
    ):  # a default that cannot be stored is left out of the schema; the function itself applies it
        schema.pop("default", None)


_MUTABLE = (list, dict, set, bytearray, deque, BaseModel)


def _with_fresh_defaults(bind: Bind, defaults: Mapping[str, Any]) -> Bind:
    """Return `bind` with a copy of each default that code can change. Python creates a default once, so what one
    execution puts into it would be seen by the next one. A default that cannot be copied is left to the function."""
    mutable: dict[str, Any] = {}
    for name, default in defaults.items():
        is_object = is_dataclass(default) and not isinstance(default, type)
        if isinstance(default, _MUTABLE) or is_object:
            with suppress(Exception):
                # Other code may call the function too, and change the default.
                mutable[name] = copy.deepcopy(default)
    if not mutable:
        return bind

    def bind_with_defaults(params: Mapping[str, Any]) -> dict[str, Any]:
        bound = bind(params)
        for name, default in mutable.items():
            if name not in bound:
                bound[name] = copy.deepcopy(default)
        return bound

    return bind_with_defaults


def _binder(adapter: TypeAdapter[Any], schema: Mapping[str, Any], ref: str) -> Bind:
    validate = adapter.validator.validate_python
    names = sorted(schema.get("properties", ()))

    def bind(params: Mapping[str, Any]) -> dict[str, Any]:
        try:
            bound: dict[str, Any] = validate(params)
        except ValidationError as error:
            raise _misfit(error, schema, ref, names) from None
        return bound

    return bind


def _misfit(error: ValidationError, schema: Mapping[str, Any], ref: str, names: list[str]) -> InvalidInput:
    messages: list[str] = []
    hint = f"{ref} takes: {', '.join(names)}." if names else f"{ref} takes no parameters."
    for detail, problem in zip(error.errors(include_url=False), problems(error), strict=True):
        if detail["type"] == "extra_forbidden":
            messages.append(f"parameters: unknown {problem.at[0]!r}")
            hint = did_you_mean(str(problem.at[0]), names) if names else hint
        elif detail["type"] != "missing" and is_secret_at(problem.at, schema):
            messages.append(f"parameters.{problem.at[0]}: does not fit (it is secret, so no more is said)")
        else:
            messages.append(f"parameters.{problem}")
    return InvalidInput("; ".join(messages), hint=hint)
