"""A key that the import of an OpenAPI document does not read is a gap, in each object of a request."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.openapi_calls import document_of, report_of

WHOLE: dict[str, Any] = document_of(
    {
        "POST /a": {
            "operationId": "a",
            "parameters": [
                {"name": "p", "in": "query", "schema": {"type": "string"}},
                {"name": "q", "in": "query", "content": {"application/json": {"schema": {}}}},
            ],
            "requestBody": {
                "required": True,
                "content": {
                    "application/x-www-form-urlencoded": {
                        "schema": {"type": "object", "properties": {"f": {"type": "string"}}},
                        "encoding": {"f": {"style": "form"}},
                    }
                },
            },
        }
    },
    security=[{"key": []}],
    components={"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "K"}}},
)
OPERATION = ("paths", "/a", "post")
FORM = (*OPERATION, "requestBody", "content", "application/x-www-form-urlencoded")
PLACES: list[tuple[Any, ...]] = [
    (),
    ("paths", "/a"),
    OPERATION,
    (*OPERATION, "parameters", 0),
    (*OPERATION, "parameters", 1, "content", "application/json"),
    (*OPERATION, "requestBody"),
    FORM,
    (*FORM, "encoding", "f"),
    ("components", "securitySchemes", "key"),
]


def with_key(place: tuple[Any, ...], key: str) -> dict[str, Any]:
    document = deepcopy(WHOLE)
    part: Any = document
    for step in place:
        part = part[step]
    part[key] = {"some": "thing"}
    return document


def test_whole_document_has_no_gap(tmp_path: Path) -> None:
    assert "Gaps to close by hand: 0" in report_of(WHOLE, tmp_path)


@pytest.mark.parametrize("place", PLACES)
def test_unknown_key_is_one_gap(tmp_path: Path, place: tuple[Any, ...]) -> None:
    report = report_of(with_key(place, "later"), tmp_path)
    assert report.count("later is not read") == 1
    assert "Gaps to close by hand: 1" in report


@pytest.mark.parametrize("place", PLACES)
def test_extensions_are_no_gaps(tmp_path: Path, place: tuple[Any, ...]) -> None:
    assert "Gaps to close by hand: 0" in report_of(with_key(place, "x-later"), tmp_path)


def test_other_methods_and_webhooks_are_gaps(tmp_path: Path) -> None:
    document = deepcopy(WHOLE)
    document["webhooks"] = {"w": {}}
    document["paths"]["/a"] |= {"trace": {"operationId": "t"}, "query": {"operationId": "q"}}
    report = report_of(document, tmp_path)
    assert "TRACE /a: HTTP actions have no method TRACE" in report
    assert "/a: query is not read" in report
    assert "the document: webhooks is not read" in report
    assert "| actions | 2 | 1 | 1 |" in report
