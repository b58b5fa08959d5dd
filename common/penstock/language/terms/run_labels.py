"""Labels of executions, such as `customer=acme`, by which lists find them. The labels of workers are others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from penstock.language.terms.options import Wrong

KEY = r"[a-z][a-z0-9_.-]{0,62}"
"""The pattern of the key of a label."""
MAX_LABELS = 16
"""The maximum number of labels that one start, rule or definition has."""
MAX_VALUE = 200
"""The maximum length of the value of a label, in characters."""
HINT = (
    f'Write at most {MAX_LABELS} labels, {{"customer": "acme"}}, each value of 1 to {MAX_VALUE} characters.'
)


def check_labels(value: Any) -> dict[str, str]:
    """Return labels. Raises Wrong."""
    if not isinstance(value, Mapping):
        raise Wrong("is not a mapping", HINT)
    if len(value) > MAX_LABELS:
        raise Wrong(f"has {len(value)} labels, and may have {MAX_LABELS}", HINT)
    for key, text in value.items():
        check_key(key)
        if not isinstance(text, str) or not 1 <= len(text) <= MAX_VALUE or not text.isprintable():
            raise Wrong(f"{key} is not a text of 1 to {MAX_VALUE} printable characters", HINT)
    return dict(value)


def check_key(key: Any) -> None:
    """Raise Wrong for a text that is not the key of a label."""
    if not isinstance(key, str) or not re.fullmatch(KEY, key):
        raise Wrong(
            f"has a key that is not a lowercase word: {str(key)[:80]!a}",
            "Write a key of at most 63 letters, digits, '_', '.' and '-', such as customer.",
        )


def rendered_labels(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that templates gave: numbers and booleans become texts. A value None leaves its label out.
    Raises Wrong."""
    return check_labels({key: label_text(value) for key, value in values.items() if value is not None})


def label_text(value: Any) -> Any:
    """Return a boolean or a number as the text of a label, and any other value as it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def parse_label_words(words: Sequence[str]) -> dict[str, str]:
    """Parse `key=value` words. Raises Wrong."""
    labels: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise Wrong(f"is not key=value: {word[:80]!a}", "Write for example customer=acme.")
        if labels.setdefault(key, value) != value:
            raise Wrong(f"has two values for {key[:80]!a}", "Give each key once.")
    return check_labels(labels)


def check_searchable(names: Sequence[str], schema: Mapping[str, Any]) -> None:
    """Raise Wrong if one of the searchable parameters is not in the schema of the parameters, holds a secret, or cannot be
    the value of a label."""
    from penstock.language.schemas.secrets import is_secret_at  # imports jsonschema, which few programs need

    properties = schema.get("properties")
    for name in names:
        check_key(name)
        if not isinstance(properties, Mapping):
            continue
        if name not in properties:
            raise Wrong(f"names no parameter: {name}", f"There are: {', '.join(sorted(properties))}.")
        field = properties[name]
        if not isinstance(field, Mapping):
            continue
        if is_secret_at((name,), schema):
            raise Wrong(
                f"names {name}, which is a secret", "Labels are shown in lists. Leave the parameter out."
            )
        if field.get("type") in ("object", "array", "null"):
            raise Wrong(
                f"names {name}, which is no text, number or boolean", "Make its searchable part a parameter."
            )


RunLabels = Annotated[dict[str, str], BeforeValidator(check_labels)]
