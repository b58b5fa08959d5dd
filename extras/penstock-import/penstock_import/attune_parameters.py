"""The conversion of the parameters of Attune's actions and workflows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock_import.nested_fields import allow_null
from penstock_import.taken_keys import TakenKeys


def parameters_of(keys: TakenKeys) -> dict[str, Any]:
    """Return the parameters below `parameters`, which are listed one by one or as one JSON Schema.

    A parameter that is not required may be null: Attune passes null for a value that an event does not have."""
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
        for key in parameters.keys() - {"type", "properties", "required"}:
            keys.gap("parameters", f"{key} of the parameters of {keys.subject}", "Write it anew.")
        parameters = flat
    parameters_by_name: dict[str, Any] = {}
    for name, about in parameters.items():
        if not isinstance(about, Mapping):
            keys.gap("parameters", f"parameter {name} of {keys.subject}", "Write it anew.")
            continue
        parameters_by_name[str(name)] = _parameter(about)
    return parameters_by_name


def _parameter(about: Mapping[str, Any]) -> dict[str, Any]:
    schema = {
        str(key): value
        for key, value in about.items()
        if key != "position" and (value is not None or key == "default")
    }
    if "default" in schema:
        schema.pop("required", None)  # a parameter with a default is never missing
    if schema.get("required") is False:
        del schema["required"]
    if not schema.get("required"):
        allow_null(schema)
    return schema
