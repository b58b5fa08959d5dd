"""The types of parameters, from the schemas of a document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from penstock.errors import InvalidInput
from penstock.language.schemas import Schema
from tests.penstock_import.openapi_calls import document_of, report_of


def schema_of(folder: Path, body: Any, **schemas: Any) -> dict[str, Any]:
    operation = {
        "operationId": "a",
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
    }
    report_of(document_of({"POST /a": operation}, components={"schemas": schemas}), folder)
    actions = yaml.safe_load((folder / "calls/actions.yaml").read_text())
    parameters: dict[str, Any] = actions["a"]["parameters"]
    return parameters


def accepts(schema: dict[str, Any], body: Any) -> bool:
    try:
        Schema(schema).validate({"body": body})
    except InvalidInput:
        return False
    return True


ID = {"type": "string", "readOnly": True}
USER: dict[str, Any] = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {"id": ID, "name": {"type": "string"}},
}


@pytest.mark.parametrize(
    "body",
    [
        USER,
        {"$ref": "#/components/schemas/User"},
        {"allOf": [{"$ref": "#/components/schemas/User"}]},
        {"allOf": [{"properties": USER["properties"]}, {"required": ["id", "name"]}]},
        {"allOf": [{"$ref": "#/components/schemas/Bare"}], "properties": {"id": ID}},
        {**USER, "properties": {**USER["properties"], "id": {"$ref": "#/components/schemas/Id"}}},
        {**USER, "properties": {"id": {"allOf": [{"$ref": "#/components/schemas/Text"}], "readOnly": True}}},
    ],
)
def test_read_only_fields_are_not_demanded(tmp_path: Path, body: Any) -> None:
    schemas = {"User": USER, "Id": ID, "Text": {"type": "string"}, "Bare": {"required": ["id", "name"]}}
    schema = schema_of(tmp_path, body, **schemas)
    assert accepts(schema, {"name": "ada"})
    assert not accepts(schema, {"id": "1"})


def test_write_only_fields_are_demanded(tmp_path: Path) -> None:
    secret = {"type": "object", "required": ["p"], "properties": {"p": {"writeOnly": True}}}
    assert not accepts(schema_of(tmp_path, secret), {})


def test_references_with_the_same_last_word_differ(tmp_path: Path) -> None:
    body = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/components/schemas/A/properties/id"},
            "b": {"$ref": "#/components/schemas/B/properties/id"},
        },
    }
    schemas = {
        "A": {"properties": {"id": {"type": "string"}}},
        "B": {"properties": {"id": {"type": "integer"}}},
    }
    schema = schema_of(tmp_path, body, **schemas)
    assert accepts(schema, {"a": "s", "b": 5})
    assert not accepts(schema, {"a": "s", "b": "s"})


def test_one_schema_demands_the_fields_around_it(tmp_path: Path) -> None:
    body = {
        "type": "object",
        "properties": {
            "new": {"allOf": [{"$ref": "#/components/schemas/Bare"}, {"properties": {"id": ID}}]},
            "old": {"$ref": "#/components/schemas/Bare"},
        },
    }
    schema = schema_of(tmp_path, body, Bare={"type": "object", "required": ["id"]})
    assert accepts(schema, {"new": {}, "old": {"id": 1}})
    assert not accepts(schema, {"new": {}, "old": {}})


def test_description_may_be_blank(tmp_path: Path) -> None:
    assert (
        schema_of(tmp_path, {"type": "string", "description": " "})["properties"]["body"]["type"] == "string"
    )
