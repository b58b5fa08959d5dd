"""References and servers of an OpenAPI document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.penstock_import.openapi_calls import document_of, report_of, requests_of

TEXT = {"type": "string"}
ID = {"name": "id", "in": "path", "required": True, "schema": TEXT}


async def test_references_may_be_escaped_and_count_lists(tmp_path: Path) -> None:
    query = {"name": "q", "in": "query", "explode": False, "schema": {"type": "array"}}
    operations = {
        "GET /item/{id}.json": {"operationId": "a", "parameters": [ID, query]},
        "GET /b/{id}": {
            "operationId": "b",
            "parameters": [
                {"$ref": "#/paths/~1item~1%7Bid%7D.json/get/parameters/0"},
                {"$ref": "#/paths/~1item~1{id}.json/get/parameters/1"},
            ],
        },
    }
    [request] = await requests_of(document_of(operations), tmp_path, [("b", {"id": "x", "q": [1, 2]})])
    assert request.path == "/b/x?q=1,2"


async def test_path_may_be_a_reference_with_more_keys(tmp_path: Path) -> None:
    document = document_of({"GET /a": {"operationId": "a"}})
    document["paths"]["/b/{id}"] = {"$ref": "#/paths/~1a", "parameters": [ID]}
    [request] = await requests_of(document, tmp_path, [("a_2", {"id": "x"})])
    assert request.path == "/b/x"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("#/components/parameters/none", "the reference #/components/parameters/none leads nowhere"),
        ("#/paths/~1a/get/parameters/7", "leads nowhere"),
        ("#/paths/~1a/get/parameters/x", "leads nowhere"),
        ("#/openapi/x", "leads nowhere"),
        ("#anchor", "is an anchor"),
        ("other.yaml#/x", "leads out of the document"),
        ("#/components/parameters/self", "leads in a circle"),
    ],
)
def test_wrong_references_are_named(tmp_path: Path, reference: str, message: str) -> None:
    circle = {"parameters": {"self": {"$ref": "#/components/parameters/self"}}}
    operation = {"operationId": "a", "parameters": [{"$ref": reference}]}
    report = report_of(document_of({"GET /a": operation}, components=circle), tmp_path)
    assert f"GET /a: the reference {reference} " in report or "leads in a circle" in report
    assert message in report
    assert "Error" not in report


@pytest.mark.parametrize(
    "wrong",
    [
        {"parameters": {}},
        {"parameters": ["x"]},
        {"parameters": [{"name": "p", "in": "query", "required": True, "content": ["x"]}]},
        {"requestBody": []},
        {"requestBody": {"content": []}},
        {"requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": "x"}}}},
        {"requestBody": {"content": {"multipart/form-data": {"schema": {"required": "x"}}}}},
        {"responses": []},
        {"security": {}},
        {"security": ["x"]},
    ],
)
def test_malformed_operations_are_gaps_in_plain_words(tmp_path: Path, wrong: dict[str, Any]) -> None:
    report = report_of(document_of({"POST /a": wrong, "GET /b": {"operationId": "b"}}), tmp_path)
    [line] = [line for line in report.splitlines() if "POST /a" in line]
    assert "object" not in line.replace("not an object", "")
    assert "not" in line
    assert list(yaml.safe_load((tmp_path / "calls/actions.yaml").read_text())) == ["b"]


def urls_of(folder: Path) -> dict[str, str]:
    actions = yaml.safe_load((folder / "calls/actions.yaml").read_text())
    return {name: action["options"]["url"] for name, action in actions.items()}


def test_nearest_server_is_called(tmp_path: Path) -> None:
    document = document_of(
        {
            "GET /a": {
                "operationId": "a",
                "servers": [{"url": "https://operation.example/v{v}/", "variables": {"v": {"default": "2"}}}],
            },
            "GET /b": {"operationId": "b"},
            "GET /c": {"operationId": "c"},
        }
    )
    document["paths"]["/a"]["servers"] = [{"url": "https://path.example"}]
    document["paths"]["/b"]["servers"] = [{"url": "https://path.example/x"}]
    report_of(document, tmp_path)
    assert urls_of(tmp_path) == {
        "a": "https://operation.example/v2/a",
        "b": "https://path.example/x/b",
        "c": "http://127.0.0.1:1/c",
    }


def test_document_without_servers_has_those_of_its_operations(tmp_path: Path) -> None:
    document = document_of({"GET /a": {"operationId": "a", "servers": [{"url": "https://a.example"}]}})
    document["paths"]["/a"]["servers"] = [{"url": "https://path.example"}]
    document["paths"]["/b"] = {"get": {"operationId": "b"}}
    del document["servers"]
    report = report_of(document, tmp_path)
    assert urls_of(tmp_path) == {"a": "https://a.example/a"}
    assert "GET /b: the document names no server" in report


def test_named_server_replaces_all_others(tmp_path: Path) -> None:
    document = document_of({"GET /a": {"operationId": "a", "servers": [{"url": "https://up.example"}]}})
    report = report_of(document, tmp_path, "--server", "https://test.example/")
    assert urls_of(tmp_path) == {"a": "https://test.example/a"}
    assert "GET /a: its own server https://up.example is not called" in report


@pytest.mark.parametrize("url", ["ftp://a.example", "/relative", "https://{host}"])
def test_server_that_cannot_be_called_is_a_gap(tmp_path: Path, url: str) -> None:
    report = report_of(document_of({"GET /a": {"operationId": "a", "servers": [{"url": url}]}}), tmp_path)
    assert "GET /a: its servers have no URL with http or https" in report
