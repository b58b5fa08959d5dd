"""Rules: when an event of this trigger meets this condition, start that action with these parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field, StrictBool

from penstock.language.definitions.declaration import Declaration
from penstock.language.definitions.qualified_name import Ref
from penstock.language.expressions.template_checks import Condition, Templates
from penstock.language.terms.column_ranges import HIGHEST_PRIORITY
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.outside_names import TENANT

Priority = Annotated[int, Field(ge=-HIGHEST_PRIORITY, le=HIGHEST_PRIORITY)]
"""Of an execution that waits for a slot: higher goes first. 0 is ordinary."""
Tenant = Annotated[str, Field(strict=True, pattern=TENANT)]


class Rule(Declaration):
    """`when` is a condition over `event` and `payload` (`payload.amount > 100`); without it every event matches.
    Texts in `params` may hold templates over the same (`"{{ payload.customer }}"`).

    Raises DefinitionError for a condition or a template that does not parse."""

    kind: ClassVar[str] = "rule"
    thing: ClassVar[str] = "rule"
    shorten: ClassVar[tuple[str, ...]] = ("ref", "trigger", "action")

    trigger: Ref
    action: Ref
    """An action or a workflow."""
    when: Condition | None = None
    params: Templates = Field(default_factory=dict)
    enabled: StrictBool = True
    """What it is when it is first applied; `penstock rules enable|disable` changes it afterwards."""
    tenant: Tenant | None = None
    """Whose events it looks at; None: everybody's."""
    priority: Priority = 0
    """Of the executions that it starts."""
    expires: PositiveDuration | None = None
    """Seconds after which what it started is of no more use, if it has not begun by then."""

    if TYPE_CHECKING:

        def __init__(
            self,
            ref: str,
            *,
            trigger: object,
            action: object,
            when: str | None = None,
            params: Mapping[str, Any] = {},
            enabled: bool = True,
            tenant: str | None = None,
            priority: int = 0,
            expires: object = None,
            description: str = "",
        ) -> None: ...
