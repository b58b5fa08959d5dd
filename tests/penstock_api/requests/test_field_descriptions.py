"""The descriptions of the fields and parameters of the API: each has one, and each common one is used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from penstock.settings import Settings
from penstock_api.app import make_app
from penstock_api.backend import Backend
from penstock_api.requests.description import document_of, models_of, page_of, subjects_of
from penstock_api.requests.field_descriptions import DESCRIPTIONS


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return make_app(cast(Backend, SimpleNamespace(settings=Settings())))


@pytest.fixture(scope="module")
def document(app: FastAPI) -> dict[str, Any]:
    return document_of(app)


def test_each_field_has_a_description(document: dict[str, Any]) -> None:
    fields = [(model, field) for model, fields in models_of(document).items() for field in fields]
    assert [f"{model}.{field.name}" for model, field in fields if not field.says] == []
    assert len(fields) > 900


def test_each_parameter_has_a_description(document: dict[str, Any]) -> None:
    operations = [operation for subject in subjects_of(document).values() for operation in subject]
    undescribed = [
        f"{operation.method} {operation.path} {parameter.name}"
        for operation in operations
        for parameter in operation.parameters
        if not parameter.says
    ]
    assert undescribed == []
    assert len(operations) > 100


def test_each_nullable_field_explains_null(document: dict[str, Any]) -> None:
    nullable = [
        f"{model}.{field.name}: {field.says}"
        for model, fields in models_of(document).items()
        for field in fields
        if field.type.endswith(" or null") and "null" not in field.says
    ]
    assert nullable == []


def test_each_common_description_is_used_by_two_fields(app: FastAPI) -> None:
    own = get_openapi(title=app.title, version=app.version, routes=app.routes)
    undescribed = [field.name for fields in models_of(own).values() for field in fields if not field.says]
    assert [name for name in DESCRIPTIONS if undescribed.count(name) < 2] == []


def test_page_shows_code_links_and_the_sentence_of_a_model(document: dict[str, Any]) -> None:
    page = page_of(document)
    assert '<a href="#MissedFires">MissedFires</a> or null' in page
    assert "<code>scheduled</code>: waits for a free slot of a worker that can run it." in page
    assert "<p>A limit that is in force.</p>" in page
    assert "`" not in page


def test_no_model_has_a_raw_name(document: dict[str, Any]) -> None:
    names = document["components"]["schemas"]
    raw = [name for name in names if "__" in name or name.endswith(("-Input", "-Output", "_"))]
    assert raw == []
