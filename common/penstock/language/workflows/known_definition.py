"""The definitions that a workflow may refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class KnownDefinition:
    """An action, workflow or trigger that exists. `schema` is that of its parameters, of a trigger that of its payload."""

    kind: str
    """action, workflow or trigger."""
    schema: Mapping[str, Any] | None = None
