"""What a workflow may refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class KnownDefinition:
    """An action, workflow or trigger that exists, with the JSON Schema of its parameters if it has one."""

    kind: Literal["action", "workflow", "trigger"]
    parameters: Mapping[str, Any] | None = None
