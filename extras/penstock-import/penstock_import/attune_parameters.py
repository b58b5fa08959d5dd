"""The conversion of the parameters of Attune's actions and workflows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock_import.nested_fields import allow_null
from penstock_import.taken_keys import TakenKeys
from penstock_import.wanted_text import literal


def parameters_of(keys: TakenKeys, *, is_of_workflow: bool = False) -> dict[str, Any]:
    """Return the parameters below `parameters`, which are listed one by one or as one JSON Schema.

    A parameter that is not required may be null: Attune passes null for a value that an event does not have. In Attune,
    null stands for the default. A workflow fills it in, and an action that is not a workflow refuses null for it."""
    parameters = keys.take("parameters", {})
    if not isinstance(parameters, Mapping):
        keys.gap("parameters", f"parameters of {keys.subject}", "Write them anew.")
        return {}
    if parameters.get("type") == "object" and isinstance(parameters.get("properties"), Mapping):
        required = parameters.get("required") or []
        flat = {
            name: {**about, **({"required": True} if name in required else {})}
            for name, about in parameters["properties"].items()
            if isinstance(about, Mapping)
        }
        if defaults := [name for name, about in flat.items() if about.get("default") is not None]:
            keys.gap(
                "parameters",
                f"the defaults of {', '.join(defaults)} of {keys.subject}, which are in a JSON Schema, from which Attune "
                "fills in no defaults",
                "If the defaults are needed, list the parameters one by one, each with its default.",
            )
            flat = {
                name: {key: value for key, value in about.items() if key != "default"}
                for name, about in flat.items()
            }
        for key in parameters.keys() - {"type", "properties", "required"}:
            keys.gap("parameters", f"{key} of the parameters of {keys.subject}", "Write it anew.")
        parameters = flat
    parameters_by_name: dict[str, Any] = {}
    for name, about in parameters.items():
        if not isinstance(about, Mapping):
            keys.gap("parameters", f"parameter {name} of {keys.subject}", "Write it anew.")
            continue
        parameters_by_name[str(name)] = _parameter(about, is_of_workflow)
    return parameters_by_name


def with_default(value: Any, default: Any) -> Any:
    """Return a value that is passed to a parameter, in which null is replaced by the default of the parameter."""
    if default is None:
        return value
    if value is None:
        return as_written(default)
    if (
        isinstance(value, str)
        and value.startswith("{{ ")
        and value.endswith(" }}")
        and value.count("{{") == 1
    ):
        ours = value.removeprefix("{{ ").removesuffix(" }}")
        if ours.endswith(f" is not none else {literal(default).text})"):
            return value  # the default of the workflow's own parameter
        return f"{{{{ {ours} if {ours} is not none else {literal(default).text} }}}}"
    return value


def as_written(value: Any) -> Any:
    """Return a value with texts that Penstock does not render: a text with braces becomes an expression that gives it."""
    if isinstance(value, Mapping):
        return {str(key): as_written(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_written(item) for item in value]
    if isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#")):
        return f"{{{{ {literal(value).text} }}}}"
    return value


def _parameter(about: Mapping[str, Any], is_of_workflow: bool) -> dict[str, Any]:
    schema = {
        str(key): value
        for key, value in about.items()
        if key != "position" and (value is not None or key == "default")
    }
    if "default" in schema:
        schema.pop("required", None)  # a parameter with a default is never missing
    if schema.get("required") is False:
        del schema["required"]
    if not schema.get("required") and (is_of_workflow or schema.get("default") is None):
        allow_null(schema)
    return schema
