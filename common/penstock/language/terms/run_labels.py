"""Labels of executions, such as `customer=acme`, by which lists find them. The labels of workers are others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

from penstock.language.terms.options import Wrong
from penstock.run.cut_texts import cut_end

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
    """Return labels. Raises Wrong if `value` is not a mapping of valid keys to texts, or has too many labels."""
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
            f"has a key that is not a lowercase word: {cut_end(ascii(str(key)), 80)}",
            "Write a key such as customer: a lowercase letter, then at most 62 lowercase letters, digits, '_', '.' and '-'.",
        )


def rendered_labels(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels that templates gave: numbers and booleans become texts. A value None leaves its label out.
    Raises Wrong if a label is not valid."""
    return check_labels({key: label_text(value) for key, value in values.items() if value is not None})


def label_text(value: Any) -> Any:
    """Return a boolean or a number as the text of a label, and any other value as it is."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def searchable_labels(names: Sequence[str], parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return the labels of searchable parameters. A value that is not a text, a number or a
    boolean has none, and neither has a text that is too long."""
    texts = {name: label_text(parameters.get(name)) for name in names}
    return {
        name: text for name, text in texts.items() if isinstance(text, str) and 1 <= len(text) <= MAX_VALUE
    }


def parse_label_words(words: Sequence[str]) -> dict[str, str]:
    """Parse `key=value` words. Raises Wrong if a word has another form, or a key has two values."""
    labels: dict[str, str] = {}
    for word in words:
        key, sign, value = word.partition("=")
        if not sign:
            raise Wrong(f"is not key=value: {cut_end(ascii(word), 80)}", "Write for example customer=acme.")
        if labels.setdefault(key, value) != value:
            raise Wrong(f"has two values for {cut_end(ascii(key), 80)}", "Give each key once.")
    return check_labels(labels)


RunLabels = Annotated[dict[str, str], BeforeValidator(check_labels)]
