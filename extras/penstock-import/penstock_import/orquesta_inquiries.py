"""The conversion of a task with StackStorm's `core.ask` to an inquiry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock_import.consumed import Node
from penstock_import.nested_fields import defaults_within, json_schema
from penstock_import.parameters import Tell
from penstock_import.wanted_text import NotMapped

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
    task: str,
    inputs: Mapping[str, Node],
    tell: Tell,
    note_route: Callable[[int, str], None],
    write: Callable[[str], Any],
) -> dict[str, Any]:
    """Return the options of an inquiry for the input of a task. Its answer is `result.response` in StackStorm, and
    `result` here. `write` translates a text with expressions; it raises NotMapped."""
    mapped: dict[str, Any] = {"prompt": task, "schema": _DEFAULT_SCHEMA, "timeout": _TTL_MINUTES * 60}
    for key, node in inputs.items():
        value = node.peek()
        is_computed = any(mark in str(value) for mark in ("{{", "{%", "<%"))
        plain, prompt = _without_computed_descriptions(value) if key == "schema" else (value, "")
        if (
            key == "schema"
            and isinstance(plain, dict)
            and not any(mark in str(plain) for mark in ("{{", "{%", "<%"))
            and not any(defaults_within(plain))
            and (translated := _translated(prompt, write)) is not None
        ):
            mapped["schema"] = json_schema(plain)
            mapped["prompt"] = translated or task
        elif key == "ttl" and isinstance(value, int) and not isinstance(value, bool):
            mapped["timeout"] = value * 60 if value > 0 else None
        elif key == "users" and isinstance(value, list) and len(value) == 1 and not is_computed:
            mapped["assignee"] = str(value[0])
        elif key in ("users", "roles") and not value:
            pass
        elif key == "route" and isinstance(value, str):
            if value:
                note_route(node.line, value)
        else:
            tell(node.line, f"{key} of the inquiry {task}: {value}", "Write it into `inquiry`.")
        node.drop()
    return {key: value for key, value in mapped.items() if value is not None}


def _without_computed_descriptions(schema: Any) -> tuple[Any, str]:
    """Return a schema without those descriptions of its fields that are computed, and all of them as one text, which the
    prompt shows."""
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict):
        return schema, ""
    plain: dict[str, Any] = {}
    descriptions: list[str] = []
    for name, about in fields.items():
        description = about.get("description") if isinstance(about, dict) else None
        if description:
            descriptions.append(str(description))
        is_computed = any(mark in str(description) for mark in ("{{", "{%", "<%"))
        plain[name] = (
            {key: value for key, value in about.items() if key != "description"} if is_computed else about
        )
    return {**schema, "properties": plain}, " ".join(descriptions)


def _translated(prompt: str, write: Callable[[str], Any]) -> str | None:
    try:
        return str(write(prompt))
    except NotMapped:
        return None
