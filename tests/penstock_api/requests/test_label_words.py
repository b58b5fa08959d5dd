"""The labels of a filter, as a person types them into a field."""

from __future__ import annotations

import pytest

from penstock_api.requests.label_words import label_words, labels_of


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", None),
        ("customer=cole", {"customer": "cole"}),
        ("customer=cole,source=shop", {"customer": "cole", "source": "shop"}),
        ("customer=cole, source=shop", {"customer": "cole", "source": "shop"}),
        (" customer=cole source=shop ", {"customer": "cole", "source": "shop"}),
        ("customer=cole and sons source=shop", {"customer": "cole and sons", "source": "shop"}),
    ],
)
def test_comma_or_space_separates_labels(text: str, labels: dict[str, str] | None) -> None:
    assert labels_of(label_words(text)) == labels
