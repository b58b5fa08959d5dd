"""Defaults of a workflow's parameters, which StackStorm may compute of other parameters. Each becomes a variable of the
workflow. The variable has the value of the parameter, or the default if the parameter is missing or null."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import DefinitionError
from penstock.language.expressions import compile_template
from penstock_import import jinja_expressions
from penstock_import.action_chain import cast
from penstock_import.nested_fields import allow_null
from penstock_import.wanted_text import NotMapped, Ours, literal, member

_ALLOWED_KEYS = frozenset(
    {"type", "default", "required", "immutable", "position", "description", "title", "secret"}
)
"""The keys that a parameter with a computed default may have. StackStorm also checks the computed value against any
other key, and Penstock would not."""
_TYPES = frozenset({"string", "integer", "number", "boolean"})


@dataclass(slots=True)
class ComputedDefaults:
    """The parameters of one workflow of StackStorm, as their file has them."""

    parameters: Mapping[str, Any]
    """The description of each parameter, by its name."""
    _open: list[str] = field(default_factory=list)
    """The parameters with defaults that are being written, to find circles."""

    def of(self, name: str) -> str:
        """Return the template of the variable for a parameter. Raises NotMapped for a default that is not computed, or
        not mapped."""
        about = self._about(name)
        kind = about.get("type", "string")
        if not is_computed(about.get("default")):
            raise NotMapped("a default that is not computed")
        if about.keys() - _ALLOWED_KEYS or about.get("secret") or kind not in _TYPES:
            raise NotMapped("a computed default whose value is checked, or secret, or no plain value")
        text = self._default(name)
        typed = (
            cast(f"{{{{ {text} }}}}", Ours(text, "str"), kind).removeprefix("{{").removesuffix("}}").strip()
        )
        mapped = f"{{{{ {self._or_supplied(about, member('parameters', name), typed)} }}}}"
        try:
            compile_template(mapped)
        except DefinitionError as error:
            raise NotMapped(f"Penstock refuses it: {error}") from None
        return mapped

    def mapped(self) -> dict[str, str]:
        """Return the templates of the variables for all parameters with a computed default that is mapped."""
        templates: dict[str, str] = {}
        for name in self.parameters:
            with suppress(NotMapped):
                templates[name] = self.of(name)
        return templates

    def root(self, function: str, argument: str | None, steps: Sequence[str]) -> tuple[Ours, int]:
        """Return the expression for a parameter that a default reads, as StackStorm has it before it converts types.
        Raises NotMapped for a part without an equivalent in Penstock."""
        if argument is not None or function not in self.parameters:
            raise NotMapped(f"`{function}` has no equivalent in Penstock")
        about = self._about(function)
        default = about.get("default")
        if is_computed(default):
            value = self._default(function)
        elif default is not None:
            value = literal(default).text
        elif about.get("immutable"):
            raise NotMapped(f"the parameter {function}, which is immutable and has no default")
        else:
            return Ours(member("parameters", function)), 0
        return Ours(f"({self._or_supplied(about, member('parameters', function), value)})"), 0

    def _about(self, name: str) -> Mapping[str, Any]:
        about = self.parameters[name]
        return about if isinstance(about, Mapping) else {}

    def _or_supplied(self, about: Mapping[str, Any], supplied: str, value: str) -> str:
        """Return an expression for what the caller gave, or else `value`. An immutable parameter is never given."""
        return (
            value if about.get("immutable") is True else f"{supplied} if {supplied} is not none else {value}"
        )

    def _default(self, name: str) -> str:
        """Return the expression for the text of a computed default."""
        if name in self._open:
            raise NotMapped(f"the default of {name}, which reads itself")
        self._open.append(name)
        try:
            return jinja_expressions.translate_to_text(str(self._about(name)["default"]), self).text
        finally:
            self._open.pop()


def is_computed(default: Any) -> bool:
    """Return whether StackStorm renders a default."""
    return isinstance(default, str) and any(mark in default for mark in ("{{", "{%"))


def without_default(about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a parameter with a default that a variable computes; None for an immutable one, which no caller
    may give."""
    if about.get("immutable") is True:
        return None
    schema = {key: about[key] for key in ("type", "title", "description") if about.get(key) is not None}
    allow_null(schema)
    return schema
