"""The description of the API: an OpenAPI 3.1 document for programs, and a page with the same content. Also the schemas
of packs and workflows, for editors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, HTMLResponse, Response

from penstock.errors import NotFound
from penstock.language.packs.shipped_schemas import KINDS, file_name, shipped
from penstock.service.problems import KIND
from penstock_api.requests.code_elements import with_code
from penstock_api.requests.field_descriptions import describe_fields, describe_parameters
from penstock_api.requests.public_path import base

Document = dict[str, Any]

DOCUMENT_AT = "/api/v1/openapi.json"
PAGE_AT = "/docs"
STYLE_AT = "/docs/description.css"
SCHEMAS_AT = "/schemas/{name}"
KIND_BY_FILE = {file_name(kind): kind for kind in KINDS}
RAW_PAGE_NAME = re.compile(rb'(?<=["/])Page_(\w+)_(?=")')
"""The name that pydantic makes for a page of a list, in JSON: `Page_ListedEvent_`."""
_HERE = Path(__file__).parents[1]


def describe(app: FastAPI) -> None:
    """Serve the description of this application as a document and as a page. Both are made at the first request, which
    takes a second. The work runs in a thread, since these routes are not async."""
    document = cache(lambda: document_of(app))
    page = cache(lambda: page_of(document()))

    @app.get(DOCUMENT_AT, include_in_schema=False)
    def openapi() -> Document:
        return document()

    @app.get(PAGE_AT, include_in_schema=False)
    def shown() -> Response:
        return HTMLResponse(page())

    @app.get(STYLE_AT, include_in_schema=False)
    def styled() -> Response:
        return FileResponse(_HERE / "static/description.css")

    @app.get(SCHEMAS_AT, include_in_schema=False)
    def schema(name: str) -> Response:
        kind = KIND_BY_FILE.get(name)
        if kind is None:
            raise NotFound(f"no schema {name}", hint=f"Available: {' and '.join(KIND_BY_FILE)}.")
        return Response(shipped(kind), media_type="application/schema+json")


def document_of(app: FastAPI) -> Document:
    """Return the OpenAPI document, in which every refusal is a problem document instead of FastAPI's default."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    if base():
        document["servers"] = [{"url": base()}]
    describe_fields(document["components"]["schemas"])
    describe_parameters(document["paths"])
    for _, operation in _operations(document):
        for status, response in operation["responses"].items():
            if status[0] in "45":
                [content] = response["content"].values()
                response["content"] = {KIND: content}
    named: Document = orjson.loads(RAW_PAGE_NAME.sub(rb"PageOf\1", orjson.dumps(document)))
    return named


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    type: str
    says: str
    required: bool
    where: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    says: str
    scope: str
    parameters: list[Field]
    body: str | None
    answers: list[tuple[str, str]]


def page_of(document: Document) -> str:
    """Return the description as HTML, which runs no scripts and loads nothing from other hosts."""
    environment = jinja2.Environment(autoescape=True)
    environment.filters["code"] = with_code
    template = environment.from_string((_HERE / "templates/description.html").read_text())
    return template.render(
        base=base(),
        info=document["info"],
        openapi=document["openapi"],
        document_at=DOCUMENT_AT,
        subjects=subjects_of(document),
        models=models_of(document),
        sentences=sentences_of(document),
    )


def subjects_of(document: Document) -> dict[str, list[Operation]]:
    """Return the operations of the API by subject."""
    subjects: dict[str, list[Operation]] = {}
    for (path, method), operation in _operations(document):
        subjects.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    return subjects


def models_of(document: Document) -> dict[str, list[Field]]:
    """Return the fields of request and answer bodies, by the name of their model."""
    return {
        name: list(_fields(schema))
        for name, schema in document["components"]["schemas"].items()
        if "properties" in schema and not name.startswith(("HTTPValidation", "ValidationError"))
    }


def sentences_of(document: Document) -> dict[str, str]:
    """Return the description of each model, by its name; empty for a model without one."""
    return {
        name: " ".join(schema.get("description", "").split())
        for name, schema in document["components"]["schemas"].items()
    }


def _operations(document: Document) -> Iterator[tuple[tuple[str, str], Document]]:
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield (path, method), operation


def _operation(path: str, method: str, operation: Document) -> Operation:
    parameters = [
        Field(
            parameter["name"],
            _type(parameter["schema"]),
            parameter.get("description", ""),
            parameter["required"],
            parameter["in"],
        )
        for parameter in operation.get("parameters", ())
    ]
    body = operation.get("requestBody")
    answers = [
        (status, _content(response))
        for status, response in operation["responses"].items()
        if status[0] == "2"
    ]
    scopes = [scope for need in operation.get("security", ()) for names in need.values() for scope in names]
    return Operation(
        method,
        path,
        operation.get("description", ""),
        ", ".join(scopes),
        parameters,
        _content(body) if body else None,
        answers,
    )


def _content(response: Mapping[str, Any]) -> str:
    return next((_type(media.get("schema", {})) for media in response.get("content", {}).values()), "")


def _fields(schema: Mapping[str, Any]) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        yield Field(name, _type(field), field.get("description", ""), name in required)


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in a word or two."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(part) for part in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    return str(schema.get("format") or schema.get("type") or "anything")
