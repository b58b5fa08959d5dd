"""The labels of a filter, as an address has them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import InvalidInput
from penstock.language.terms.options import Wrong
from penstock.language.terms.run_labels import parse_label_words


def labels_of(words: Sequence[str]) -> dict[str, str] | None:
    """Return the labels of `key=value` words; None without any. Raises InvalidInput."""
    try:
        return parse_label_words(words) or None
    except Wrong as wrong:
        raise InvalidInput(f"label {wrong}", hint=wrong.hint) from None
