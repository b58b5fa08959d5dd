"""Triggers: kinds of events, which are published from outside or returned by a polling function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, PrivateAttr, field_validator

from penstock.language.definitions.action import Action
from penstock.language.definitions.declaration import Declaration, declare, remember
from penstock.language.definitions.poll_action import poll_action
from penstock.language.definitions.qualified_name import pack_of, qualified
from penstock.language.schemas import payload_schema as as_schema  # a field is called `payload_schema`
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Options, Wrong
from penstock.language.terms.sources import Source, caller, of_code
from penstock.language.terms.system_triggers import HINT_PUBLISH, is_system


class Poll(Options):
    """The interval of a poll trigger's calls, in seconds, and the timeout of a call."""

    thing: ClassVar[str] = "poll"

    every: PositiveDuration
    timeout: PositiveDuration = 300


class Trigger(Declaration):
    """A kind of event, with the shape of its payload.

    `schema` is a pydantic model, a dataclass or another type, a JSON Schema, or the short form of YAML; an event with
    an invalid payload is refused when it is published. Without `schema` any payload is accepted.
    """

    kind: ClassVar[str] = "trigger"
    thing: ClassVar[str] = "trigger"

    payload_schema: Annotated[dict[str, Any], BeforeValidator(as_schema)] = Field(
        default_factory=dict, alias="schema"
    )
    poll: Poll | None = None
    """The poll options; set only for a poll trigger."""

    @field_validator("ref")
    @classmethod
    def _is_of_a_user(cls, ref: str) -> str:
        if is_system(ref):
            raise Wrong(f"is in the pack of system triggers: {ref!r}", HINT_PUBLISH)
        return ref

    _function: Callable[..., Any] | None = PrivateAttr(default=None)
    _poll_action: Action[..., Any] | None = PrivateAttr(default=None)

    if TYPE_CHECKING:

        def __init__(self, ref: str, *, schema: Any = None, description: str = "") -> None: ...

    @property
    def function(self) -> Callable[..., Any] | None:
        """Return the function of a poll trigger, which returns new events (see `trigger`), or None."""
        return self._function

    @property
    def is_coroutine(self) -> bool:
        return inspect.iscoroutinefunction(self._function)

    def parts(self) -> Iterator[Any]:
        """Yield the trigger, and for a poll trigger the action that calls its function."""
        yield self
        if self._poll_action is not None:
            yield self._poll_action


def trigger(
    ref: str | None = None,
    *,
    every: Any,
    timeout: Any = 300,
    schema: Any = None,
    description: str | None = None,
    pack: str | None = None,
) -> Callable[[Callable[..., Any]], Trigger]:
    """Declare a poll trigger: a function that is called at the interval `every` and returns new events as a list of
    payloads.

    It may take one parameter, `state`: a dict that the previous call stored together with its events. A call runs as
    an execution of an action with the trigger's name, on a worker that has the function. The next call begins one
    interval after the last one, but not before that one has ended. See docs/poll-triggers.md.

    Raises DefinitionError if the function takes other parameters, or an option is not valid.
    """

    frame = caller()

    def declare_poll(function: Callable[..., Any]) -> Trigger:
        values: dict[str, Any] = {
            "ref": ref,
            "schema": schema,
            "poll": {"every": every, "timeout": timeout},
            "description": description,
        }
        values = {name: value for name, value in values.items() if value is not None}
        declared = poll_trigger(function, values, pack)
        remember(declared, frame)
        return declared

    return declare_poll


def poll_trigger(
    function: Callable[..., Any],
    values: Mapping[str, Any],
    pack: str | None = None,
    source: Source | None = None,
) -> Trigger:
    """Return the poll trigger of a function, with the action that calls it. Raises DefinitionError if the function
    takes other parameters than `state`, or a value is not valid."""
    if not inspect.isroutine(function) or not hasattr(inspect.unwrap(function), "__code__"):
        raise TypeError("a poll trigger is made of a function: put @trigger(every=...) above a def")
    plain = inspect.unwrap(function)
    source = source or of_code(plain.__code__)
    if [name for name in inspect.signature(function).parameters if name != "state"]:
        raise source.wrong(
            f"trigger {plain.__name__} takes parameters that it cannot get",
            "A poll trigger takes nothing, or one parameter called state.",
        )
    module_pack = pack_of(plain.__globals__)
    pack = pack or (module_pack.name if module_pack else None)
    declared = declare(
        Trigger,
        {
            "description": inspect.getdoc(function) or "",
            **values,
            "ref": qualified(str(values.get("ref") or plain.__name__), pack),
        },
        source,
    )
    declared._function = function
    assert declared.poll is not None
    declared._poll_action = poll_action(
        declared.ref, function, declared.poll.timeout, source, declared.description
    )
    return declared
