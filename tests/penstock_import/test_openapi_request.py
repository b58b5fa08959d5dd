"""Parameters in their styles: the table of OpenAPI 3.1.1 (4.8.12.4), compared with what a server receives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.penstock_import.openapi_calls import document_of, report_of, requests_of

TEXT: dict[str, Any] = {"type": "string"}
LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "integer"}}
VALUES = {"text": "blue", "list": ["blue", "black", "brown"], "object": {"R": 100, "G": 200, "B": 150}}
SCHEMAS = {"text": TEXT, "list": LIST, "object": OBJECT}

QUERY: dict[tuple[str | None, bool | None, str], str] = {
    (None, None, "text"): "color=blue",
    (None, None, "list"): "color=blue&color=black&color=brown",
    (None, None, "object"): "R=100&G=200&B=150",
    ("form", True, "text"): "color=blue",
    ("form", True, "list"): "color=blue&color=black&color=brown",
    ("form", True, "object"): "R=100&G=200&B=150",
    ("form", False, "text"): "color=blue",
    ("form", False, "list"): "color=blue,black,brown",
    ("form", False, "object"): "color=R,100,G,200,B,150",
    ("spaceDelimited", None, "list"): "color=blue%20black%20brown",
    ("spaceDelimited", False, "list"): "color=blue%20black%20brown",
    ("spaceDelimited", False, "object"): "color=R%20100%20G%20200%20B%20150",
    ("pipeDelimited", False, "list"): "color=blue%7Cblack%7Cbrown",
    ("pipeDelimited", False, "object"): "color=R%7C100%7CG%7C200%7CB%7C150",
    ("deepObject", True, "object"): "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150",
}
"""Style, explode and type of `color`: the query."""
PATH: dict[tuple[str | None, bool | None, str], str] = {
    (None, None, "text"): "blue",
    (None, None, "list"): "blue,black,brown",
    (None, None, "object"): "R,100,G,200,B,150",
    ("simple", True, "text"): "blue",
    ("simple", True, "list"): "blue,black,brown",
    ("label", None, "text"): ".blue",
    ("label", False, "list"): ".blue,black,brown",
    ("label", False, "object"): ".R,100,G,200,B,150",
    ("matrix", None, "text"): ";color=blue",
    ("matrix", False, "list"): ";color=blue,black,brown",
    ("matrix", False, "object"): ";color=R,100,G,200,B,150",
}
REFUSED_PATH = [
    ("simple", True, "object"),
    ("label", True, "list"),
    ("label", True, "object"),
    ("matrix", True, "list"),
    ("matrix", True, "object"),
]
HEADER: dict[tuple[str | None, bool | None, str], str] = {
    (None, None, "text"): "blue",
    (None, None, "list"): "blue,black,brown",
    (None, None, "object"): "R,100,G,200,B,150",
    ("simple", True, "list"): "blue,black,brown",
    ("simple", True, "object"): "R=100,G=200,B=150",
}
COOKIE: dict[tuple[str | None, bool | None, str], str] = {
    (None, None, "text"): "color=blue",
    ("form", False, "list"): "color=blue,black,brown",
    ("form", False, "object"): "color=R,100,G,200,B,150",
}


def parameter(place: str, style: str | None, explode: bool | None, kind: str) -> dict[str, Any]:
    return {
        "name": "color",
        "in": place,
        "required": place == "path",
        "schema": SCHEMAS[kind],
        **({"style": style} if style else {}),
        **({"explode": explode} if explode is not None else {}),
    }


async def received(
    folder: Path, place: str, keys: list[tuple[str | None, bool | None, str]], *, is_missing: bool = False
) -> list[Any]:
    operations = {}
    calls: list[tuple[str, dict[str, Any]]] = []
    for number, (style, explode, kind) in enumerate(keys):
        path = f"/{number}/{{color}}" if place == "path" else f"/{number}"
        operations[f"GET {path}"] = {
            "operationId": f"n{number}",
            "parameters": [parameter(place, style, explode, kind)],
        }
        calls.append((f"n{number}", {} if is_missing else {"color": VALUES[kind]}))
    return await requests_of(document_of(operations), folder, calls)


async def test_queries_are_those_of_the_table(tmp_path: Path) -> None:
    requests = await received(tmp_path, "query", list(QUERY))
    assert [request.path.partition("?")[2] for request in requests] == list(QUERY.values())


async def test_paths_are_those_of_the_table(tmp_path: Path) -> None:
    requests = await received(tmp_path, "path", list(PATH))
    assert [request.path.split("/")[2] for request in requests] == list(PATH.values())


async def test_headers_are_those_of_the_table(tmp_path: Path) -> None:
    requests = await received(tmp_path, "header", list(HEADER))
    assert [request.headers["color"] for request in requests] == list(HEADER.values())


async def test_cookies_are_those_of_the_table(tmp_path: Path) -> None:
    requests = await received(tmp_path, "cookie", list(COOKIE))
    assert [request.headers["cookie"] for request in requests] == list(COOKIE.values())


@pytest.mark.parametrize(("place", "keys"), [("query", QUERY), ("header", HEADER), ("cookie", COOKIE)])
async def test_missing_optional_parameters_are_left_out(tmp_path: Path, place: str, keys: Any) -> None:
    requests = await received(tmp_path, place, list(keys), is_missing=True)
    assert not [request for request in requests if "?" in request.path or "color" in request.headers]
    assert not [request for request in requests if "cookie" in request.headers]


def test_lists_that_a_path_cannot_have_are_gaps(tmp_path: Path) -> None:
    operations = {
        f"GET /{number}/{{color}}": {"parameters": [parameter("path", *key)]}
        for number, key in enumerate(REFUSED_PATH)
    }
    report = report_of(document_of(operations), tmp_path)
    assert f"| actions | {len(REFUSED_PATH)} | 0 | 0 |" in report
    for number in range(len(REFUSED_PATH)):
        assert f"GET /{number}/{{color}}: its parameter color of the path is a list or an object" in report


async def test_parameter_of_content_is_json(tmp_path: Path) -> None:
    media: dict[str, Any] = {"content": {"application/json": {"schema": {}}}}
    operations = {
        "GET /a/{p}": {
            "operationId": "a",
            "parameters": [
                {"name": "p", "in": "path", "required": True, **media},
                {"name": "q", "in": "query", **media},
                {"name": "X-H", "in": "header", **media},
                {"name": "t", "in": "query", "content": {"text/plain": {"schema": TEXT}}},
            ],
        }
    }
    calls: list[tuple[str, dict[str, Any]]] = [
        ("a", {"p": [1], "q": {"r": 1}, "x_h": ["a"], "t": "x"}),
        ("a", {"p": "x", "q": "text", "x_h": {"k": None}}),
        ("a", {"p": 1}),
    ]
    first, second, third = await requests_of(document_of(operations), tmp_path, calls)
    assert first.path == "/a/%5B1%5D?q=%7B%22r%22%3A1%7D&t=x"
    assert first.headers["x-h"] == '["a"]'
    assert second.path == "/a/%22x%22?q=%22text%22"
    assert second.headers["x-h"] == '{"k":null}'
    assert (third.path, "x-h" in third.headers) == ("/a/1", False)


async def test_list_or_text_goes_by_its_value(tmp_path: Path) -> None:
    schema = {"anyOf": [LIST, TEXT, {"type": "null"}]}
    name = {"name": "v", "in": "query", "schema": schema}
    operations = {
        "GET /a": {"operationId": "a", "parameters": [{**name, "explode": False}]},
        "GET /b": {"operationId": "b", "parameters": [name]},
    }
    calls: list[tuple[str, dict[str, Any]]] = [
        (id, {"v": value}) for id in "ab" for value in (["x", "y,z"], "x,y")
    ]
    requests = await requests_of(document_of(operations), tmp_path, calls)
    assert [request.path for request in requests] == [
        "/a?v=x,y%2Cz",
        "/a?v=x%2Cy",
        "/b?v=x&v=y%2Cz",
        "/b?v=x%2Cy",
    ]


async def test_types_of_responses_are_asked_for(tmp_path: Path) -> None:
    def answers(*kinds: str) -> dict[str, Any]:
        return {"responses": {"200": {"description": "", "content": {kind: {} for kind in kinds}}}}

    operations = {
        "GET /a": {"operationId": "a", **answers("application/vnd.api+json")},
        "GET /b": {"operationId": "b", **answers("application/json", "text/csv")},
        "GET /c": {"operationId": "c", **answers()},
        "GET /d": {"operationId": "d", **answers("text/csv", "application/pdf")},
    }
    requests = await requests_of(document_of(operations), tmp_path, [(id, {}) for id in "abcd"])
    ours = "application/json, */*;q=0.5"
    assert [request.headers["accept"] for request in requests] == [
        "application/vnd.api+json",
        ours,
        ours,
        "text/csv, application/pdf",
    ]


@pytest.mark.parametrize(
    ("wrong", "gap", "actions"),
    [
        ({"in": "query", "style": "simple"}, "its parameter p of the query has the style simple", 1),
        ({"in": "query", "style": "simple", "required": True}, "of the query has the style simple", 0),
        ({"in": "query", "explode": "no"}, "its parameter p has an explode that is not true or false", 1),
        ({"in": "querystring"}, "its parameter p is in querystring", 0),
        ({"in": "query", "content": {"a/b": {}}}, "its parameter p is a/b", 1),
        ({"in": "query", "content": {}}, "its parameter p has more or less than one schema", 1),
        ({"in": "cookie", "schema": LIST}, "its cookie p is a list or an object with explode", 1),
        ({"in": "query", "schema": TEXT, "allowReserved": True}, "the parameter p: allowReserved", 1),
        ({"in": "query", "schema": TEXT, "collectionFormat": "csv"}, "parameter p: collectionFormat", 1),
        ({"in": "path", "required": True}, "its path has no placeholder for its parameter p", 1),
        ({"in": "header", "name": "Host"}, "its header Host is set by Penstock", 1),
    ],
)
def test_parameters_that_are_not_sent_are_gaps(
    tmp_path: Path, wrong: dict[str, Any], gap: str, actions: int
) -> None:
    operations = {"GET /a": {"operationId": "a", "parameters": [{"name": "p", **wrong}]}}
    report = report_of(document_of(operations), tmp_path)
    assert f"GET /a: {gap}" in report or f"GET /a: the parameter p: {gap}" in report or gap in report
    assert f"| actions | 1 | 0 | {actions} |" in report
    assert (tmp_path / "calls/actions.yaml").exists() == bool(actions)


async def test_parameter_of_the_credential_is_its_secret(tmp_path: Path) -> None:
    operations = {
        "GET /a": {"operationId": "a", "parameters": [{"name": "key", "in": "query", "schema": TEXT}]}
    }
    schemes = {"k": {"type": "apiKey", "in": "query", "name": "key"}}
    document = document_of(operations, security=[{"k": []}], components={"securitySchemes": schemes})
    [request] = await requests_of(document, tmp_path, [("a", {})], secrets={"calls_token": "s"})
    assert request.path == "/a?key=s"
    assert "its parameter key is its credential" in (tmp_path / "calls/IMPORT.md").read_text()


async def test_fragment_of_a_path_is_a_gap(tmp_path: Path) -> None:
    document = document_of({"GET /a#b=c": {"operationId": "a"}})
    [request] = await requests_of(document, tmp_path, [("a", {})])
    assert request.path == "/a"
    assert "Penstock does not send the part of its path after #" in (tmp_path / "calls/IMPORT.md").read_text()


async def test_one_name_may_stand_in_two_places(tmp_path: Path) -> None:
    names = [{"name": "v", "in": place, "schema": TEXT} for place in ("query", "cookie", "header")]
    document = document_of({"GET /a": {"operationId": "a", "parameters": names}})
    [request] = await requests_of(document, tmp_path, [("a", {"v": "a/b", "v_2": "c d", "v_3": "e"})])
    assert request.path == "/a?v=a%2Fb"
    assert (request.headers["cookie"], request.headers["v"]) == ("v=c%20d", "e")


@pytest.mark.parametrize(
    "names",
    [
        [("query", LIST, {"explode": False}), ("header", LIST, {})],
        [("query", LIST, {}), ("cookie", TEXT, {})],
        [("query", OBJECT, {}), ("cookie", OBJECT, {"explode": False})],
    ],
)
def test_one_name_in_two_styles_is_a_gap(tmp_path: Path, names: list[Any]) -> None:
    parameters = [{"name": "v", "in": place, "schema": schema, **keys} for place, schema, keys in names]
    report = report_of(document_of({"GET /a": {"operationId": "a", "parameters": parameters}}), tmp_path)
    assert "GET /a: two of its parameters are named v, and have different encodings" in report
