"""`penstock import openapi`: operations become HTTP actions, and the project has no fault."""

from __future__ import annotations

import email
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from penstock.cli import build
from penstock.errors import InvalidInput, NotFound
from penstock.language.loading import load_all
from penstock.run.task_executors import attempt
from penstock_import.openapi import OpenApiDocument
from penstock_worker.executors.http.http import HttpExecutor
from tests.penstock_worker.executors.runs import run_of
from tests.penstock_worker.executors.web import Answer, serving

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "Depot API", "version": "1"},
    "servers": [{"url": "https://{region}.depot.example/v1", "variables": {"region": {"default": "eu"}}}],
    "security": [{"token": []}],
    "paths": {
        "/crates/{crate-id}": {
            "parameters": [{"$ref": "#/components/parameters/crate"}],
            "get": {
                "operationId": "crates/getOne",
                "tags": ["crates"],
                "summary": "Show a crate.",
                "parameters": [
                    {
                        "name": "with",
                        "in": "query",
                        "schema": {"type": "array", "items": {"type": "string", "enum": ["owner"]}},
                    },
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string", "nullable": True}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "It."}},
            },
        },
        "/crates": {
            "post": {
                "operationId": "crates/create",
                "tags": ["crates"],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Crate"}}},
                },
                "responses": {"201": {"description": "It."}},
            },
        },
        "/charges/{charge}": {
            "get": {
                "operationId": "GetCharges",
                "security": [],
                "parameters": [
                    {"name": "charge", "in": "path", "required": True, "schema": {"type": "string"}},
                    {
                        "name": "created",
                        "in": "query",
                        "style": "deepObject",
                        "schema": {"anyOf": [{"type": "object"}, {"type": "integer"}]},
                    },
                ],
                "responses": {"200": {"description": "It."}},
            },
            "post": {
                "operationId": "PostCharges",
                "security": [],
                "parameters": [
                    {"name": "charge", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "items": {
                                        "type": "array",
                                        "items": {
                                            "type": "object",
                                            "properties": {"price": {"type": "string"}},
                                        },
                                    },
                                    "shipping": {
                                        "anyOf": [{"type": "object"}, {"enum": [""], "type": "string"}]
                                    },
                                    "capture": {"type": "boolean"},
                                    "taxes": {
                                        "anyOf": [
                                            {"type": "array", "items": {"type": "string"}},
                                            {"enum": [""], "type": "string"},
                                        ]
                                    },
                                },
                            },
                            "encoding": {
                                "items": {"style": "deepObject", "explode": True},
                                "shipping": {"style": "deepObject", "explode": True},
                                "taxes": {"style": "deepObject", "explode": True},
                            },
                        }
                    }
                },
                "responses": {"200": {"description": "It."}},
            },
            "delete": {
                "operationId": "DeleteCharges",
                "security": [],
                "parameters": [
                    {"name": "charge", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "requestBody": {
                    "content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}
                },
                "responses": {"200": {"description": "It."}},
            },
        },
        "/photos": {
            "get": {
                "operationId": "GetPhotos",
                "security": [],
                "parameters": [
                    {
                        "name": "of",
                        "in": "query",
                        "style": "deepObject",
                        "required": True,
                        "schema": {
                            "oneOf": [
                                {"type": "array", "items": {"type": "string"}},
                                {"$ref": "#/components/schemas/Range"},
                            ]
                        },
                    }
                ],
                "responses": {"200": {"description": "It."}},
            },
            "post": {
                "operationId": "PostPhotos",
                "security": [],
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "required": ["title"],
                                "properties": {
                                    "title": {"type": "string"},
                                    "tags": {"type": "array", "items": {"type": "string"}},
                                    "picture": {"type": "string", "format": "binary"},
                                },
                            }
                        }
                    }
                },
                "responses": {"200": {"description": "It."}},
            },
            "put": {
                "operationId": "PutPhotos",
                "security": [],
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {"type": "object", "properties": {"title": {"type": "string"}}}
                        }
                    }
                },
                "responses": {"200": {"description": "It."}},
            },
        },
        "/labels": {
            "post": {
                "tags": ["labels"],
                "requestBody": {
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {
                                "type": "object",
                                "required": ["text"],
                                "properties": {
                                    "text": {"type": "string"},
                                    "expand": {"type": "array", "items": {"type": "string"}},
                                    "metadata": {
                                        "type": "object",
                                        "additionalProperties": {"type": "string"},
                                    },
                                },
                            },
                            "encoding": {
                                "expand": {"style": "deepObject", "explode": True},
                                "metadata": {"style": "deepObject", "explode": True},
                            },
                        }
                    }
                },
                "responses": {"200": {"description": "It."}},
            },
        },
    },
    "components": {
        "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        "parameters": {
            "crate": {"name": "crate-id", "in": "path", "required": True, "schema": {"type": "integer"}}
        },
        "schemas": {
            "Range": {"type": "object", "properties": {"first": {"type": "string"}}},
            "Crate": {
                "type": "object",
                "required": ["weight"],
                "properties": {
                    "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                    "inside": {"type": "array", "items": {"$ref": "#/components/schemas/Crate"}},
                },
            },
        },
    },
}


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "depot.json"
    path.write_text(json.dumps(DOCUMENT))
    return path


def imported(document: Path, into: Path, *options: str) -> dict[str, Any]:
    ran = CliRunner().invoke(build(), ["import", "openapi", str(document), "--into", str(into), *options])
    assert ran.exit_code == 0, ran.output
    ran = CliRunner().invoke(build(), ["lint", str(into)])
    assert (ran.exit_code, "no fault" in ran.output) == (0, True), ran.output
    actions: dict[str, Any] = yaml.safe_load((into / "actions.yaml").read_text())
    return actions


def test_operations_become_typed_actions(document: Path, tmp_path: Path) -> None:
    actions = imported(document, tmp_path / "depot")
    assert sorted(actions) == [
        "crates_create",
        "crates_get_one",
        "delete_charges",
        "get_charges",
        "get_photos",
        "post_charges",
        "post_labels",
        "post_photos",
        "put_photos",
    ]
    show = actions["crates_get_one"]
    assert show["description"] == "Show a crate."
    assert show["parameters"]["required"] == ["crate_id"]
    assert sorted(show["parameters"]["properties"]) == ["crate_id", "with", "x_trace"]
    assert show["parameters"]["properties"]["x_trace"] == {"type": ["string", "null"]}
    assert show["options"]["url"] == "https://eu.depot.example/v1/crates/{{ parameters['crate_id'] }}"
    assert show["options"]["secrets"] == {"token": "depot_token"}
    assert show["options"]["request"]["headers"]["Authorization"] == "Bearer {{ secrets.token }}"
    crate = actions["crates_create"]["parameters"]["$defs"]["Crate"]
    assert crate["properties"]["weight"] == {"type": "number", "exclusiveMinimum": 0}
    assert crate["properties"]["inside"]["items"] == {"$ref": "#/$defs/Crate"}
    assert "secrets" not in actions["get_charges"]["options"]


def test_only_repeatable_operations_are_retried(document: Path, tmp_path: Path) -> None:
    actions = imported(document, tmp_path / "depot")
    retried = {name for name, action in actions.items() if "retry" in action}
    assert retried == {"crates_get_one", "delete_charges", "get_charges", "get_photos", "put_photos"}
    assert actions["get_charges"]["retry"]["max_attempts"] == 4
    assert "&id" not in (tmp_path / "depot/actions.yaml").read_text()


def test_chosen_operations_server_and_secret(document: Path, tmp_path: Path) -> None:
    actions = imported(
        document, tmp_path / "depot", "--only", "labels", "--server", "http://localhost:1/", "--secret", "key"
    )
    assert list(actions) == ["post_labels"]
    assert actions["post_labels"]["options"]["url"] == "http://localhost:1/labels"
    assert actions["post_labels"]["options"]["secrets"] == {"token": "key"}


async def test_imported_actions_call_the_server(document: Path, tmp_path: Path) -> None:
    async with serving() as web:
        actions = imported(document, tmp_path / "depot", "--server", web.url(""))
        assert actions
        known = load_all(str(tmp_path / "depot")).actions
        calls: list[tuple[str, dict[str, Any], str, str, bytes]] = [
            ("crates_get_one", {"crate_id": 7, "with": ["owner"]}, "GET", "/crates/7?with=owner", b""),
            ("crates_create", {"body": {"weight": 1.5}}, "POST", "/crates", b'{"weight":1.5}'),
            (
                "post_labels",
                {"text": "a b", "expand": ["x", "y"], "metadata": {"k": "v"}},
                "POST",
                "/labels",
                b"text=a+b&expand%5B%5D=x&expand%5B%5D=y&metadata%5Bk%5D=v",
            ),
            (
                "get_charges",
                {"charge": "ch/1", "created": {"gte": 5, "lt": 9}},
                "GET",
                "/charges/ch%2F1?created%5Bgte%5D=5&created%5Blt%5D=9",
                b"",
            ),
            ("get_charges", {"charge": "c", "created": 5}, "GET", "/charges/c?created=5", b""),
            (
                "post_charges",
                {
                    "charge": "c",
                    "items": [{"price": "p", "tax_rates": ["t", "u"]}, {"price": "q"}],
                    "shipping": {"address": {"city": "Ulm"}},
                    "capture": False,
                },
                "POST",
                "/charges/c",
                b"items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Btax_rates%5D%5B0%5D=t&items%5B0%5D%5Btax_rates%5D%5B1%5D=u"
                b"&items%5B1%5D%5Bprice%5D=q&shipping%5Baddress%5D%5Bcity%5D=Ulm&capture=false",
            ),
            ("post_charges", {"charge": "c", "shipping": ""}, "POST", "/charges/c", b"shipping="),
            (
                "post_charges",
                {"charge": "c", "taxes": ["t", "u"]},
                "POST",
                "/charges/c",
                b"taxes%5B%5D=t&taxes%5B%5D=u",
            ),
            ("post_charges", {"charge": "c", "taxes": ""}, "POST", "/charges/c", b"taxes="),
            ("get_photos", {"of": ["a", "b"]}, "GET", "/photos?of%5B%5D=a&of%5B%5D=b", b""),
            ("get_photos", {"of": {"first": "a"}}, "GET", "/photos?of%5Bfirst%5D=a", b""),
            ("delete_charges", {"charge": "c"}, "DELETE", "/charges/c", b""),
        ]
        executor = HttpExecutor(allow=["127.0.0.1"])
        for name, params, method, path, body in calls:
            web.answer(path, Answer(200, b'{"ok": true}', {"Content-Type": "application/json"}))
            run, _ = run_of(dict(known[f"depot.{name}"].options), params, secrets={"token": "t0ken"})
            outcome = await attempt(executor, run)
            assert outcome.result == {"ok": True}, outcome
            request = web.requests[-1]
            assert (request.method, request.path, request.body) == (method, path, body)
        assert web.requests[0].headers["authorization"] == "Bearer t0ken"
        await executor.close(0)


@pytest.mark.parametrize(
    ("name", "params", "parts"),
    [
        ("post_photos", {"title": "a", "picture": "PNG"}, {"title": b"a", "picture": b"PNG"}),
        ("post_photos", {"title": "a"}, {"title": b"a"}),
        ("put_photos", {"title": "a"}, {"title": b"a"}),
    ],
)
async def test_multipart_operation_sends_its_parts(
    document: Path, tmp_path: Path, name: str, params: dict[str, Any], parts: dict[str, bytes]
) -> None:
    async with serving() as web:
        imported(document, tmp_path / "depot", "--server", web.url(""))
        known = load_all(str(tmp_path / "depot")).actions
        web.answer("/photos", Answer(200, b"{}", {"Content-Type": "application/json"}))
        executor = HttpExecutor(allow=["127.0.0.1"])
        run, _ = run_of(dict(known[f"depot.{name}"].options), params)
        outcome = await attempt(executor, run)
        assert outcome.kind == "completed", outcome
        [request] = web.requests
        head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
        message = email.message_from_bytes(head + request.body)
        assert message.get_content_type() == "multipart/form-data"
        leaves = [part for part in message.walk() if not part.is_multipart()]
        sent = {part.get_param("name", header="content-disposition"): part for part in leaves}
        assert {key: part.get_payload(decode=True) for key, part in sent.items()} == parts
        await executor.close(0)


def test_other_documents_are_refused(tmp_path: Path) -> None:
    old = tmp_path / "old.yaml"
    old.write_text("swagger: '2.0'\n")
    none = {"name": None, "server": None, "secret": None, "only": ()}
    with pytest.raises(InvalidInput, match="not a document of OpenAPI 3"):
        OpenApiDocument(str(old), **none)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="no file"):
        OpenApiDocument(str(tmp_path / "missing.json"), **none)  # type: ignore[arg-type]


def test_gaps_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    odd = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://odd.example"}],
        "paths": {
            "/a/{id}": {"get": {"responses": {}}},
            "/b": {"get": {"parameters": [{"$ref": "other.json#/x"}], "responses": {}}},
            "/c": {"get": {"parameters": [{"name": "p", "in": "query", "schema": {"pattern": "(?<=a)b"}}]}},
        },
    }
    path.write_text(json.dumps(odd))
    actions = imported(path, tmp_path / "odd")
    assert list(actions) == ["get_c"]
    report = (tmp_path / "odd" / "IMPORT.md").read_text()
    assert "its path has a placeholder without a parameter" in report
    assert "leads out of the document" in report
