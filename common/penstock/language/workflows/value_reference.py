"""Stand-ins for values that are only known when a workflow runs. They render to expressions.

files = fetch(url=parameters.url).files      # {{ tasks.fetch.result.files }}
f"{parameters.day}.csv"                      # "{{ parameters.day }}.csv"
(files | "length") > 3                       # {{ (tasks.fetch.result.files | length) > 3 }}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, NoReturn

from penstock.errors import DefinitionError
from penstock.language.terms.sources import Source, caller, of_frame

FORMATTED: ContextVar[Any] = ContextVar("penstock.language.workflows.formatted", default=None)
"""The latest `each(...)` that was formatted into a text. The text `f"{path}.gz"` itself does not keep it."""

CONVERTED: ContextVar[list[Source] | None] = ContextVar("penstock.language.workflows.converted", default=None)
"""The places where a workflow passes `str(...)` of a reference as a value, while lint collects them, or None."""

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ReferenceText(str):
    """The text of a reference that `str(...)` gave, with its place in the code. In a longer text it is a part of a template.
    As a value by itself it has the type of the value, and not that of a text."""

    __slots__ = ("source",)
    source: Source


class ValueReference:
    """A reference to a value of the run. Its attributes and items, and the results of operators on it, are references
    too."""

    __slots__ = ("_each", "_text")

    def __init__(self, text: str | Callable[[], str], fan_out: Any = None) -> None:
        self._text = text
        self._each = fan_out
        """The `each(...)` of which this value is an item, or from an item of which it was computed, or None."""

    # The declared type is Any: at run time the value takes the place of this stand-in.
    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._derived(lambda: f"{expression(self)}.{name}")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            bounds = ":".join("" if part is None else literal(part) for part in (key.start, key.stop))
            return self._derived(lambda: f"{expression(self)}[{bounds}]")
        if isinstance(key, str) and _WORD.fullmatch(key):
            return self._derived(lambda: f"{expression(self)}.{key}")
        return self._derived(lambda: f"{expression(self)}[{literal(key)}]")

    def __str__(self) -> str:
        text = ReferenceText(self._template())
        text.source = of_frame(caller())
        return text

    def __format__(self, spec: str) -> str:
        if spec:
            raise _misuse(
                f"{self._template()} cannot have the format `:{spec}`, since its value is only known when the workflow runs",
                "Use a filter, such as value | 'round(2)', or format the value in an action.",
            )
        return self._template()

    def _template(self) -> str:
        if self._each is not None:
            FORMATTED.set(self._each)
        return f"{{{{ {expression(self)} }}}}"

    def __repr__(self) -> str:
        return f"<{{{{ {expression(self)} }}}}>"

    def _no_number(self, call: str, hint: str) -> DefinitionError:
        return _misuse(f"{call} of {self._template()} is only known when the workflow runs", hint)

    def __int__(self) -> int:
        raise self._no_number("int(...)", "Write value | 'int'.")

    def __float__(self) -> float:
        raise self._no_number("float(...)", "Write value | 'float'.")

    def __complex__(self) -> complex:
        raise self._no_number("complex(...)", "Compute it in an action.")

    def __index__(self) -> int:
        raise self._no_number(
            "the number", "Write each(...) in a task instead of range(...), or compute it in an action."
        )

    def __round__(self, digits: int | None = None) -> int:
        name = "round" if digits is None else f"round({digits})"
        raise self._no_number("round(...)", f"Write value | {name!r}.")

    def __trunc__(self) -> int:
        raise self._no_number("trunc(...)", "Write value | 'int'.")

    def __floor__(self) -> int:
        raise self._no_number("floor(...)", "Write value // 1.")

    def __ceil__(self) -> int:
        raise self._no_number("ceil(...)", "Write -(-value // 1).")

    def __abs__(self) -> int:
        raise self._no_number("abs(...)", "Write value | 'abs'.")

    def __bytes__(self) -> bytes:
        raise self._no_number("bytes(...)", "Compute it in an action.")

    def _derived(self, text: Callable[[], str], other: Any = None) -> ValueReference:
        fan_out = self._each if self._each is not None else getattr(other, "_each", None)
        return ValueReference(text, fan_out)

    def _operation(self, operator: str, other: Any, swapped: bool = False) -> ValueReference:
        def text() -> str:
            first, second = (other, self) if swapped else (self, other)
            return f"({literal(first)} {operator} {literal(second)})"

        return self._derived(text, other if isinstance(other, ValueReference) else None)

    def __eq__(self, other: object) -> Any:
        return self._operation("==", other)

    def __ne__(self, other: object) -> Any:
        return self._operation("!=", other)

    __hash__ = object.__hash__

    def __lt__(self, other: Any) -> ValueReference:
        return self._operation("<", other)

    def __le__(self, other: Any) -> ValueReference:
        return self._operation("<=", other)

    def __gt__(self, other: Any) -> ValueReference:
        return self._operation(">", other)

    def __ge__(self, other: Any) -> ValueReference:
        return self._operation(">=", other)

    def __add__(self, other: Any) -> ValueReference:
        return self._operation("+", other)

    def __radd__(self, other: Any) -> ValueReference:
        return self._operation("+", other, swapped=True)

    def __sub__(self, other: Any) -> ValueReference:
        return self._operation("-", other)

    def __rsub__(self, other: Any) -> ValueReference:
        return self._operation("-", other, swapped=True)

    def __mul__(self, other: Any) -> ValueReference:
        return self._operation("*", other)

    def __rmul__(self, other: Any) -> ValueReference:
        return self._operation("*", other, swapped=True)

    def __truediv__(self, other: Any) -> ValueReference:
        return self._operation("/", other)

    def __rtruediv__(self, other: Any) -> ValueReference:
        return self._operation("/", other, swapped=True)

    def __floordiv__(self, other: Any) -> ValueReference:
        return self._operation("//", other)

    def __mod__(self, other: Any) -> ValueReference:
        return self._operation("%", other)

    def __and__(self, other: Any) -> ValueReference:
        return self._operation("and", other)

    def __or__(self, other: Any) -> ValueReference:
        """Return a filtered value (`a | "length"`), or for two references (`a | b`) the expression `a or b`."""
        if isinstance(other, str):
            return self._derived(lambda: f"({expression(self)} | {other})")
        return self._operation("or", other)

    def __invert__(self) -> ValueReference:
        return self._derived(lambda: f"(not {expression(self)})")

    def __neg__(self) -> ValueReference:
        return self._derived(lambda: f"(-{expression(self)})")

    def __bool__(self) -> bool:
        hint = "Write the condition as `when=...` of a task, with & | ~ for and, or, not; or decide in an action."
        raise _misuse(f"whether {self} is true is only known when the workflow runs", hint)

    def __iter__(self) -> NoReturn:
        raise _misuse(f"what is in {self} is only known when the workflow runs", "Use each(...) in a task.")

    def __len__(self) -> int:
        raise _misuse(f"how long {self} is, is only known when the workflow runs", "Write value | 'length'.")

    def __contains__(self, item: object) -> bool:
        hint = "Write the expression as text: when=\"{{ 'x' in vars.names }}\"."
        raise _misuse(f"what is in {self} is only known when the workflow runs", hint)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise _misuse(f"{self} cannot be called", "It stands for a value that an action will return.")


def expression(value: ValueReference) -> str:
    """Return a reference as the text of an expression, without the braces."""
    text = object.__getattribute__(value, "_text")
    return text if isinstance(text, str) else str(text())


def literal(value: Any) -> str:
    """Return a value as it is written inside an expression."""
    if isinstance(value, ValueReference):
        return expression(value)
    if value is None or isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{literal(key)}: {literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, str | int | float):
        return json.dumps(value)
    raise _misuse(
        f"a {type(value).__name__} cannot stand in an expression", "Use JSON values and references."
    )


def template(value: Any) -> Any:
    """Return a value as a template: references in it become texts with `{{ }}`."""
    if isinstance(value, ValueReference):
        return f"{{{{ {expression(value)} }}}}"
    if isinstance(value, ReferenceText):
        if (places := CONVERTED.get()) is not None and value.source not in places:
            places.append(value.source)
        return str.__str__(value)
    if isinstance(value, Mapping):
        return {template(key): template(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [template(item) for item in value]
    return value


def _misuse(message: str, hint: str) -> DefinitionError:
    return of_frame(caller()).wrong(message, hint)


parameters = ValueReference("parameters")
"""The parameters of the run."""
variables = ValueReference("vars")
"""The variables: the workflow's `vars`, and the variables that earlier tasks published."""
context = ValueReference("context")
"""The parameters and the variables. A variable hides a parameter of the same name."""
system = ValueReference("system")
"""The run's own data: `system.id` and `system.workflow`, and in the exit task also `system.status` and `system.error`.
"""
item = ValueReference("item")
index = ValueReference("index")
"""The item and its position in the list (from 0), in the input of a task with items."""
result = ValueReference("result")
error = ValueReference("error")
"""The result and the error of a task, in its own `publish` and `on`."""
event = ValueReference("event")
"""The event, in the filter of `wait_for_event`."""


def expr(text: str) -> ValueReference:
    """Return a reference to an expression that is written as text: `expr("vars.names | sort | first")`."""
    return ValueReference(text.strip().removeprefix("{{").removesuffix("}}").strip())
