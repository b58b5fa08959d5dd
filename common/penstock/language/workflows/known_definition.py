"""The existing definitions to which a workflow may refer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KnownDefinition:
    """An existing action, workflow or trigger. `schema` is that of its parameters or, for a trigger, of its payload."""

    kind: str
    """The kind: action, workflow or trigger."""
    schema: Mapping[str, Any] | None = None
