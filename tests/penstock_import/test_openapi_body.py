"""Bodies of operations: media types, forms and multipart bodies, as a server receives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.openapi_calls import document_of, report_of, requests_of
from tests.penstock_worker.executors.web import Request

OBJECT: dict[str, Any] = {"type": "object"}
FILE: dict[str, Any] = {"type": "string", "format": "binary"}
LIST: dict[str, Any] = {"type": "array", "items": {"type": "integer"}}


def post(content: dict[str, Any], *, required: bool = True, **rest: Any) -> dict[str, Any]:
    return {
        "operationId": "send",
        "requestBody": {"content": content, **({"required": True} if required else {})},
        **rest,
    }


def form(
    properties: dict[str, Any], encoding: dict[str, Any] | None = None, *, kind: str = "x-www-form-urlencoded"
) -> dict[str, Any]:
    media = {"schema": {"type": "object", "properties": properties}, "encoding": encoding or {}}
    return post({f"multipart/{kind}" if kind == "form-data" else f"application/{kind}": media})


async def sent(folder: Path, operation: dict[str, Any], params: dict[str, Any]) -> Request:
    [request] = await requests_of(document_of({"POST /": operation}), folder, [("send", params)])
    return request


def parts_of(request: Request) -> list[str]:
    """Return the parts of a multipart body, without what all of them begin with."""
    boundary = request.headers["content-type"].partition("boundary=")[2]
    parts = request.body.decode().split(f"--{boundary}")[1:-1]
    return [part.strip("\r\n").removeprefix("Content-Disposition: form-data; ") for part in parts]


@pytest.mark.parametrize(
    ("kinds", "sent_kind"),
    [
        (["application/json"], "application/json"),
        (["application/merge-patch+json"], "application/merge-patch+json"),
        (["application/vnd.api+json"], "application/vnd.api+json"),
        (["application/xml", "application/vnd.api+json", "application/json"], "application/json"),
        (["application/json; charset=utf-8"], "application/json; charset=utf-8"),
        (["*/*"], "application/json"),
        (["application/x-www-form-urlencoded", "text/plain", "application/a+json"], "application/a+json"),
    ],
)
async def test_json_has_the_type_of_the_document(tmp_path: Path, kinds: list[str], sent_kind: str) -> None:
    operation = post({kind: {"schema": OBJECT} for kind in kinds})
    request = await sent(tmp_path, operation, {"body": {"a": None}})
    assert (request.headers["content-type"], request.body) == (sent_kind, b'{"a":null}')


@pytest.mark.parametrize("kind", ["application/json", "application/a+json", "text/plain"])
async def test_missing_optional_body_is_not_sent(tmp_path: Path, kind: str) -> None:
    request = await sent(tmp_path, post({kind: {"schema": {}}}, required=False), {})
    assert (request.body, "content-type" in request.headers) == (b"", False)


FORMS: list[tuple[dict[str, Any], dict[str, Any], Any, str]] = [
    (LIST, {}, [1, 2], "f=1&f=2"),
    (LIST, {"explode": False}, [1, 2], "f=1,2"),
    (LIST, {"style": "form"}, [1, 2], "f=1&f=2"),
    (LIST, {"style": "spaceDelimited"}, [1, 2], "f=1%202"),
    (LIST, {"style": "pipeDelimited", "explode": False}, [1, 2], "f=1%7C2"),
    (LIST, {"style": "deepObject", "explode": True}, [1, 2], "f%5B%5D=1&f%5B%5D=2"),
    (OBJECT, {}, {"r": 1, "g": [2]}, "f=%7B%22r%22%3A1%2C%22g%22%3A%5B2%5D%7D"),
    (OBJECT, {"style": "form"}, {"r": 1, "g": 2}, "r=1&g=2"),
    (OBJECT, {"explode": False}, {"r": 1, "g": 2}, "f=r,1,g,2"),
    (OBJECT, {"style": "deepObject"}, {"r": 1, "g": {"b": 2}}, "f%5Br%5D=1&f%5Bg%5D%5Bb%5D=2"),
    (OBJECT, {"contentType": "application/json"}, {"r": 1}, "f=%7B%22r%22%3A1%7D"),
    ({"type": "array", "items": OBJECT}, {}, [{"r": 1}, {"r": 2}], "f=%7B%22r%22%3A1%7D&f=%7B%22r%22%3A2%7D"),
    ({"anyOf": [OBJECT, {"type": "string"}]}, {}, {"r": 1}, "f=%7B%22r%22%3A1%7D"),
    ({"anyOf": [OBJECT, {"type": "string"}]}, {}, "", "f="),
    ({"type": "string"}, {"contentType": "text/plain"}, "a b", "f=a+b"),
]
"""Schema and encoding of the field `f`, its value, and the body."""


async def test_fields_of_forms_have_their_encodings(tmp_path: Path) -> None:
    operations = {
        f"POST /{number}": {**form({"f": schema}, {"f": encoding}), "operationId": f"n{number}"}
        for number, (schema, encoding, _, _) in enumerate(FORMS)
    }
    calls: list[tuple[str, dict[str, Any]]] = [
        (f"n{number}", {"f": value}) for number, (_, _, value, _) in enumerate(FORMS)
    ]
    requests = await requests_of(document_of(operations), tmp_path, calls)
    assert [request.body.decode() for request in requests] == [row[3] for row in FORMS]


async def test_fields_of_all_parts_are_sent(tmp_path: Path) -> None:
    schemas = {
        "Base": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
        "More": {
            "allOf": [
                {"$ref": "#/components/schemas/Base"},
                {"properties": {"b": {"type": "integer"}}},
                {
                    "oneOf": [
                        {"required": ["c"], "properties": {"c": {"type": "string"}, "d": {"type": "string"}}},
                        {"required": ["c"], "properties": {"c": {"type": "integer"}}},
                    ]
                },
            ]
        },
    }
    operation = post({"application/x-www-form-urlencoded": {"schema": {"$ref": "#/components/schemas/More"}}})
    document = document_of({"POST /": operation}, components={"schemas": schemas})
    calls: list[tuple[str, dict[str, Any]]] = [
        ("send", {"a": "x", "b": 1, "c": 5}),
        ("send", {"a": "x", "c": "y", "d": "z"}),
    ]
    requests = await requests_of(document, tmp_path, calls)
    assert [request.body for request in requests] == [b"a=x&b=1&c=5", b"a=x&c=y&d=z"]
    assert "required:\n    - a\n    - c\n" in (tmp_path / "calls/actions.yaml").read_text()


async def test_parts_have_their_types(tmp_path: Path) -> None:
    properties = {
        "file": FILE,
        "files": {"type": "array", "items": FILE},
        "meta": OBJECT,
        "rows": {"type": "array", "items": OBJECT},
        "ids": LIST,
        "csv": LIST,
        "note": {"type": "string"},
        "raw": {"contentMediaType": "application/octet-stream"},
    }
    encoding = {
        "file": {"contentType": "image/svg+xml"},
        "csv": {"style": "form", "explode": False},
        "note": {"contentType": "text/markdown"},
    }
    params = {
        "file": "<svg/>",
        "files": ["a", "b"],
        "meta": {"k": 1},
        "rows": [{"r": 1}, {"r": 2}],
        "ids": [1, 2],
        "csv": [1, 2],
        "note": "# x",
        "raw": "r",
    }
    request = await sent(tmp_path, form(properties, encoding, kind="form-data"), params)
    octets = "Content-Type: application/octet-stream"
    assert parts_of(request) == [
        'name="meta"\r\nContent-Type: application/json\r\n\r\n{"k":1}',
        'name="rows"\r\nContent-Type: application/json\r\n\r\n{"r":1}',
        'name="rows"\r\nContent-Type: application/json\r\n\r\n{"r":2}',
        'name="ids"\r\n\r\n1',
        'name="ids"\r\n\r\n2',
        'name="csv"\r\n\r\n1,2',
        'name="note"\r\nContent-Type: text/markdown\r\n\r\n# x',
        'name="file"; filename="file"\r\nContent-Type: image/svg+xml\r\n\r\n<svg/>',
        f'name="files"; filename="files"\r\n{octets}\r\n\r\na',
        f'name="files"; filename="files"\r\n{octets}\r\n\r\nb',
        f'name="raw"; filename="raw"\r\n{octets}\r\n\r\nr',
    ]


async def test_parts_that_are_null_are_left_out(tmp_path: Path) -> None:
    properties = {"file": FILE, "files": {"type": "array", "items": FILE}, "meta": OBJECT, "n": LIST}
    request = await sent(tmp_path, form(properties, kind="form-data"), {"n": [1]})
    assert parts_of(request) == ['name="n"\r\n\r\n1']


async def test_read_only_fields_are_not_required(tmp_path: Path) -> None:
    user = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}},
    }
    request = await sent(
        tmp_path, post({"application/x-www-form-urlencoded": {"schema": user}}), {"name": "a"}
    )
    assert request.body == b"name=a"


MEDIA = {"schema": {"type": "object", "properties": {"f": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("operation", "gap", "actions"),
    [
        (
            form({"f": LIST}, {"f": {"style": "matrix"}}),
            "its field f has the style matrix, and is left out",
            1,
        ),
        (form({"f": FILE}, {"f": {"contentType": "a/b, c/d"}}, kind="form-data"), "is sent as a/b", 1),
        (form({"f": FILE}, {"f": {"contentType": "a/*"}}, kind="form-data"), "sent as application/octet", 1),
        (form({"f": FILE}, kind="form-data"), "its file f is sent as text, in UTF-8", 1),
        (form({"f": OBJECT}, {"f": {"contentType": "a/b"}}), "its field f is a/b, and is left out", 1),
        (
            form({"f": OBJECT}, {"f": {"contentType": "application/xml"}}, kind="form-data"),
            "its field f is application/xml and no text",
            1,
        ),
        (
            form({"f": {"anyOf": [OBJECT, {"type": "string"}]}}, kind="form-data"),
            "its field f may be an object or a text",
            1,
        ),
        (
            form({"f": FILE}, {"f": {"headers": {"X": {"schema": {}}}}}, kind="form-data"),
            "the field f: headers is not read",
            1,
        ),
        (form({"f": LIST}, {"f": {"allowReserved": True}}), "the field f: allowReserved is not read", 1),
        (form({"f": LIST}, {"g": {"style": "form"}}), "its encoding names g, which is not a field", 1),
        (
            post({"multipart/form-data": {"schema": {**OBJECT, "additionalProperties": FILE}}}),
            "its form may have undeclared fields",
            1,
        ),
        (post({"application/x-www-form-urlencoded": {"schema": LIST}}), "its form is not an object", 0),
        (post({"application/xml": {"schema": OBJECT}}), "a body of application/xml is sent as text", 1),
        (post({"multipart/mixed": {"schema": OBJECT}}), "HTTP actions send no body of multipart/mixed", 0),
        (post({"image/*": {"schema": FILE}}), "HTTP actions send no body of image/*", 0),
        (post({}), "its body has no media type", 0),
        (
            post({"application/json": {"schema": {}, "itemSchema": {}, "prefixEncoding": [{}]}}),
            "prefixEncod",
            1,
        ),
        (post({"application/json": {}}, callbacks={"c": {"x": {}}}), "callbacks is not read", 1),
    ],
)
def test_bodies_that_are_not_sent_are_gaps(
    tmp_path: Path, operation: dict[str, Any], gap: str, actions: int
) -> None:
    report = report_of(document_of({"POST /": operation}), tmp_path)
    assert gap in report
    assert f"| actions | 1 | 0 | {actions} |" in report


@pytest.mark.parametrize(("required", "actions"), [(True, 0), (False, 1)])
def test_body_of_get_is_a_gap(tmp_path: Path, required: bool, actions: int) -> None:
    operation = post({"application/json": {"schema": {**OBJECT, "properties": {"a": {}}}}}, required=required)
    report = report_of(document_of({"GET /": operation}), tmp_path)
    assert "GET /: " in report
    assert f"| actions | 1 | 0 | {actions} |" in report


def test_optional_body_of_get_without_fields_is_no_gap(tmp_path: Path) -> None:
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    operation = post({"application/x-www-form-urlencoded": {"schema": empty, "encoding": {}}}, required=False)
    report = report_of(document_of({"GET /": operation}), tmp_path)
    assert "Gaps to close by hand: 0" in report
    assert "| actions | 1 | 1 | 1 |" in report
