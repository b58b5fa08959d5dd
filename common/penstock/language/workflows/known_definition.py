"""The existing definitions to which a workflow may refer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KnownDefinition:
    """An existing action, workflow or trigger. `schema` is the schema of its parameters, or of a trigger's payload."""

    kind: str
    """The kind: action, workflow or trigger."""
    schema: Mapping[str, Any] | None = None
