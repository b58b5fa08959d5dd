"""The check of the searchable parameters of an action or workflow, which become labels of its executions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.language.schemas.secrets import is_secret_at
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import check_key


def check_searchable(names: Sequence[str], schema: Mapping[str, Any]) -> None:
    """Raise Wrong for a searchable parameter that the schema does not have, that is a secret, or that fits no label."""
    properties = schema.get("properties")
    for name in names:
        check_key(name)
        if not isinstance(properties, Mapping):
            continue
        if name not in properties:
            raise Wrong(f"names no parameter: {name}", f"Available: {', '.join(sorted(properties))}.")
        field = properties[name]
        if not isinstance(field, Mapping):
            continue
        if is_secret_at((name,), schema):
            raise Wrong(
                f"names {name}, which is a secret", "Labels are shown in lists. Leave the parameter out."
            )
        if field.get("type") in ("object", "array", "null"):
            raise Wrong(
                f"names {name}, which is not a text, number or boolean",
                "Make its searchable part a parameter.",
            )
