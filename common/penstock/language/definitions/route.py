"""Routes, which assign the executions of a namespace to a work queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from pydantic import Field, model_validator

from penstock.errors import DefinitionError
from penstock.language.definitions.declaration import Declaration
from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.options import Wrong
from penstock.language.terms.routing import RoutingRule


class Route(Declaration):
    """`Route("*::ml::*", "gpu")` sends executions with a matching namespace to the queue `work.gpu`. The first matching
    route wins, in the order of `position` and then of the pattern; `penstock.language.terms.routing` explains patterns.
    Raises DefinitionError if a value is not valid."""

    kind: ClassVar[str] = "route"
    positional: ClassVar[tuple[str, ...]] = ("pattern", "route")
    shorten: ClassVar[tuple[str, ...]] = ()

    ref: str = ""
    """The pattern, which only one route may have."""
    pattern: str = Field(strict=True)
    route: str = Field(strict=True)
    position: Annotated[int, Field(ge=0, le=INTEGER)] | None = None
    """The rank of the route; lower ones come first. None: the order of writing, after earlier routes of its module or
    pack."""

    if TYPE_CHECKING:

        def __init__(
            self, pattern: str, route: str, *, position: int | None = None, description: str = ""
        ) -> None: ...

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        return values if "ref" in values else {**values, "ref": values.get("pattern", "")}

    @model_validator(mode="after")
    def _well_formed(self) -> Self:
        try:
            RoutingRule(self.pattern, self.route)
        except DefinitionError as error:
            raise Wrong(error.message, error.hint) from None
        return self

    def placed(self, position: int) -> Route:
        """Return this route, at `position` if it has no position of its own."""
        if self.position is not None:
            return self
        placed = self.model_copy(update={"position": position})
        placed._source = self._source
        return placed
