"""The base of all declarations: a ref, the place where it was written, and a stored form."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any, ClassVar, TypeVar

from pydantic import Field, PrivateAttr

from penstock.language.definitions.document import Document
from penstock.language.definitions.qualified_name import Ref, pack_of, qualified
from penstock.language.terms.options import Options, Problem, read_options, refusal
from penstock.language.terms.sources import Source, caller, of_frame

UNBOUND = "__penstock__"
"""The name of the global in which a module's top-level declarations are listed, so that `Rule(...)` counts without a
variable."""


def remember(thing: object, frame: FrameType) -> None:
    """Add a declaration to the list of its module, if it is made at the module's top level."""
    if frame.f_code.co_name == "<module>":
        frame.f_globals.setdefault(UNBOUND, []).append(thing)


class Declaration(Options):
    """A declaration of a user. `Rule("big_orders", ...)` at the top level of a module belongs to that module, bound to
    a variable or not."""

    kind: ClassVar[str]
    positional: ClassVar[tuple[str, ...]] = ("ref",)
    shorten: ClassVar[tuple[str, ...]] = ("ref",)
    """The options in which a name without a pack means a definition of the module's own pack."""

    ref: Ref
    description: str = Field(default="", strict=True)

    _source: Source = PrivateAttr(default=Source("?", 0))

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        pack = None
        for name in cls.shorten:
            value = values.get(name)
            if isinstance(value, str) and "." not in value:
                pack = pack or pack_of(caller().f_globals)
                values[name] = qualified(value, pack.name if pack else None)
        return values

    def written_in(self, frame: FrameType) -> None:
        self._source = of_frame(frame)
        remember(self, frame)

    @property
    def source(self) -> Source:
        return self._source

    def body(self) -> dict[str, Any]:
        """Return the stored form. Defaults are omitted."""
        return {"ref": self.ref, **self.written()}

    def document(self) -> Document:
        """Return the stored document. Raises DefinitionError if the declaration cannot be stored."""
        return Document.of(self.kind, self.ref, self.body(), self._source)

    def parts(self) -> Iterator[Any]:
        """Yield the declaration, and the declarations that it contains."""
        yield self

    def wrong(self, message: str, hint: str | None = None, at: tuple[str | int, ...] = ()) -> Exception:
        """Return the error for a fault in one of the options, with its place."""
        return refusal(f"{self.kind} {self.ref}", [Problem(at, message, hint)], self._source)


D = TypeVar("D", bound=Declaration)


def declare(kind: type[D], values: dict[str, Any], source: Source) -> D:
    """Return a declaration that was read from a file. Raises DefinitionError that names the lines of the faults."""
    declaration = read_options(kind, values, source, f"{kind.kind} {values.get('ref', '')}".strip())
    declaration._source = source
    return declaration
