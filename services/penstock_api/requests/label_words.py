"""The labels of a filter, as an address has them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.errors import InvalidInput
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import parse_label_words

SEPARATOR = re.compile(r",|\s+(?=[^\s,=]+=)")
"""A comma, or the space before the next `key=`. The value of a label may have spaces."""


def label_words(text: str) -> list[str]:
    """Return the `key=value` words of a field."""
    return [word.strip() for word in SEPARATOR.split(text) if word.strip()]


def labels_of(words: Sequence[str]) -> dict[str, str] | None:
    """Return the labels of `key=value` words; None without any. Raises InvalidInput for a word that is not `key=value`,
    or not a valid label."""
    try:
        return parse_label_words(words) or None
    except Wrong as wrong:
        raise InvalidInput(f"label {wrong}", hint=wrong.hint) from None
