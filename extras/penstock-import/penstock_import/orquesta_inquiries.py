"""The conversion of a task with StackStorm's `core.ask` to an inquiry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock_import.consumed import Node
from penstock_import.nested_fields import defaults_within, json_schema
from penstock_import.parameters import Tell

_TTL_MINUTES = 1440
"""The default time for an answer, in minutes."""
_DEFAULT_SCHEMA = {
    "title": "response_data",
    "type": "object",
    "properties": {
        "continue": {"type": "boolean", "description": "Would you like to continue the workflow?"},
    },
    "required": ["continue"],
}


def inquiry(
    task: str, inputs: Mapping[str, Node], tell: Tell, note_route: Callable[[int, str], None]
) -> dict[str, Any]:
    """Return the options of an inquiry for the input of a task. Its answer is `result.response` in StackStorm, and
    `result` here."""
    mapped: dict[str, Any] = {"prompt": task, "schema": _DEFAULT_SCHEMA, "timeout": _TTL_MINUTES * 60}
    for key, node in inputs.items():
        value = node.peek()
        is_computed = any(mark in str(value) for mark in ("{{", "{%", "<%"))
        if (
            key == "schema"
            and isinstance(value, dict)
            and not is_computed
            and not any(defaults_within(value))
        ):
            mapped["schema"] = json_schema(value)
            mapped["prompt"] = _prompt(value) or task
        elif key == "ttl" and isinstance(value, int) and not isinstance(value, bool):
            mapped["timeout"] = value * 60 if value > 0 else None
        elif key == "users" and isinstance(value, list) and len(value) == 1 and not is_computed:
            mapped["assignee"] = str(value[0])
        elif key in ("users", "roles") and not value:
            pass
        elif key == "route" and isinstance(value, str) and not is_computed:
            if value:
                note_route(node.line, value)
        else:
            tell(node.line, f"{key} of the inquiry {task}: {value}", "Write it into `inquiry`.")
        node.drop()
    return {key: value for key, value in mapped.items() if value is not None}


def _prompt(schema: Mapping[str, Any]) -> str:
    fields = schema.get("properties")
    parts = [about.get("description") for about in fields.values()] if isinstance(fields, dict) else []
    return " ".join(str(part) for part in parts if part)
