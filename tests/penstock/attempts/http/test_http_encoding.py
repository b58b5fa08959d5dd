"""The encodings of queries, forms, headers and cookies, compared with the table of OpenAPI 3.1.1 (4.8.12.4)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.errors import DefinitionError
from penstock.language.definitions.program_actions import http_action
from penstock.run.task_executors import attempt
from penstock_worker.executors.http.http import HttpExecutor
from tests.penstock_worker.executors.runs import run_of
from tests.penstock_worker.executors.web import Answer, Request, serving

LIST = ["blue", "black", "brown"]
COLORS = {"R": 100, "G": 200, "B": 150}
TABLE: list[tuple[dict[str, Any], Any, str]] = [
    ({"style": "form"}, "blue", "color=blue"),
    ({"style": "form"}, "", "color="),
    ({"style": "form"}, LIST, "color=blue,black,brown"),
    ({"style": "form", "explode": True}, LIST, "color=blue&color=black&color=brown"),
    ({"style": "form"}, COLORS, "color=R,100,G,200,B,150"),
    ({"style": "form", "explode": True}, COLORS, "R=100&G=200&B=150"),
    ({"style": "spaceDelimited"}, LIST, "color=blue%20black%20brown"),
    ({"style": "spaceDelimited"}, COLORS, "color=R%20100%20G%20200%20B%20150"),
    ({"style": "pipeDelimited"}, LIST, "color=blue%7Cblack%7Cbrown"),
    ({"style": "pipeDelimited"}, COLORS, "color=R%7C100%7CG%7C200%7CB%7C150"),
    ({"style": "form"}, ["a,b", "c d", "é&=", True, None], "color=a%2Cb,c%20d,%C3%A9%26%3D,true"),
    ({"style": "form"}, [], ""),
]
"""Encoding, value, and the query or the form."""


@pytest.fixture
async def executor() -> AsyncIterator[HttpExecutor]:
    executor = HttpExecutor(allow=["127.0.0.1"])
    yield executor
    await executor.close(0)


async def sent(executor: HttpExecutor, url: str, request: dict[str, Any], params: dict[str, Any]) -> Request:
    """Return the request that arrives at a server."""
    async with serving() as web:

        class Routes(dict[str, Any]):
            def __missing__(self, path: str) -> Any:
                web.answer(path, Answer(204))
                return self[path]

        web.routes = Routes()
        run, _ = run_of({"url": web.url(url), "request": request}, params)
        outcome = await attempt(executor, run)
        assert outcome.kind == "completed", outcome
        [arrived] = web.requests
        return arrived


@pytest.mark.parametrize(("encoding", "value", "expected"), TABLE)
async def test_queries_and_forms_have_the_styles_of_openapi(
    executor: HttpExecutor, encoding: dict[str, Any], value: Any, expected: str
) -> None:
    fields = {"color": "{{ parameters.v }}"}
    query = await sent(executor, "/", {"query": fields, "encoding": {"color": encoding}}, {"v": value})
    assert query.path == ("/?" + expected if expected else "/")
    form = {"method": "POST", "form": fields, "encoding": {"color": encoding}}
    assert (await sent(executor, "/", form, {"v": value})).body.decode() == expected


@pytest.mark.parametrize(
    ("explode", "value", "expected"),
    [
        (False, LIST, "blue,black,brown"),
        (True, LIST, "blue,black,brown"),
        (False, COLORS, "R,100,G,200,B,150"),
        (True, COLORS, "R=100,G=200,B=150"),
        (False, 5, "5"),
    ],
)
async def test_headers_have_the_style_simple(
    executor: HttpExecutor, explode: bool, value: Any, expected: str
) -> None:
    request = {
        "headers": {"X-Color": "{{ parameters.v }}", "X-None": []},
        "encoding": {"X-Color": {"style": "simple", "explode": explode}, "X-None": {"style": "simple"}},
    }
    arrived = await sent(executor, "/", request, {"v": value})
    assert arrived.headers["x-color"] == expected
    assert "x-none" not in arrived.headers


async def test_cookies_are_one_header(executor: HttpExecutor) -> None:
    request = {
        "cookies": {"a": "{{ parameters.a }}", "b": "{{ parameters.b }}", "raw": "x/y", "none": None},
        "encoding": {"a": {"style": "form"}, "b": {"style": "form"}},
    }
    arrived = await sent(executor, "/", request, {"a": "1;2", "b": ["x y", "z"]})
    assert arrived.headers["cookie"] == "a=1%3B2; b=x%20y,z; raw=x/y"


async def test_cookie_cannot_add_another(executor: HttpExecutor) -> None:
    options = {"url": "http://127.0.0.1:1/", "request": {"cookies": {"a": "{{ parameters.a }}"}}}
    outcome = await attempt(executor, run_of(options, {"a": "1; admin=1"})[0])
    assert outcome.error is not None
    assert "semicolon" in outcome.error.message


async def test_one_name_has_one_encoding_in_all_places(executor: HttpExecutor) -> None:
    values = {"x": "{{ parameters.v }}"}
    request = {"query": values, "cookies": values, "headers": values, "encoding": {"x": {"style": "form"}}}
    arrived = await sent(executor, "/", request, {"v": "a b"})
    assert arrived.path == "/?x=a%20b"
    assert (arrived.headers["cookie"], arrived.headers["x"]) == ("x=a%20b", "a b")


async def test_list_in_the_path_has_commas(executor: HttpExecutor) -> None:
    arrived = await sent(executor, "/c/{{ parameters.v }}/x", {}, {"v": ["a,b", "c/d"]})
    assert arrived.path == "/c/a%2Cb,c%2Fd/x"


async def test_json_bodies_have_other_types(executor: HttpExecutor) -> None:
    kind = "application/merge-patch+json"
    request = {"method": "PATCH", "body": "{{ parameters.v }}", "content_type": kind}
    arrived = await sent(executor, "/", request, {"v": {"a": None}})
    assert (arrived.headers["content-type"], arrived.body) == (kind, b'{"a":null}')


async def test_text_that_is_null_is_no_body(executor: HttpExecutor) -> None:
    arrived = await sent(executor, "/", {"method": "POST", "text": "{{ parameters.v }}"}, {"v": None})
    assert (arrived.body, "content-type" in arrived.headers) == (b"", False)


async def test_fields_are_parts_of_a_type(executor: HttpExecutor) -> None:
    request = {
        "method": "POST",
        "form": {"meta": "{{ parameters.meta }}", "rows": "{{ parameters.rows }}", "ids": [1, 2]},
        "files": {"data": {"content": "{{ parameters.files }}", "type": "text/csv"}},
        "encoding": {
            "meta": {"content_type": "application/json"},
            "rows": {"content_type": "application/json"},
            "ids": {"style": "form"},
        },
    }
    params = {"meta": {"k": 1}, "rows": [{"a": 1}, {"a": 2}], "files": ["x", "y"]}
    arrived = await sent(executor, "/", request, params)
    boundary = arrived.headers["content-type"].partition("boundary=")[2]
    parts = [part.strip("\r\n") for part in arrived.body.decode().split(f"--{boundary}")[1:-1]]
    as_json = 'Content-Disposition: form-data; name="{}"\r\nContent-Type: application/json\r\n\r\n{}'
    as_file = (
        'Content-Disposition: form-data; name="data"; filename="data"\r\nContent-Type: text/csv\r\n\r\n{}'
    )
    assert parts == [
        as_json.format("meta", '{"k":1}'),
        as_json.format("rows", '{"a":1}'),
        as_json.format("rows", '{"a":2}'),
        'Content-Disposition: form-data; name="ids"\r\n\r\n1,2',
        as_file.format("x"),
        as_file.format("y"),
    ]


async def test_form_fields_are_json(executor: HttpExecutor) -> None:
    request = {
        "method": "POST",
        "form": {"f": "{{ parameters.f }}"},
        "encoding": {"f": {"content_type": "application/json"}},
    }
    arrived = await sent(executor, "/", request, {"f": {"a": [1]}})
    assert arrived.body == b"f=%7B%22a%22%3A%5B1%5D%7D"


async def test_next_page_keeps_the_encoding(executor: HttpExecutor) -> None:
    async with serving() as web:
        json = {"Content-Type": "application/json"}
        web.answer("/?ids=1,2", Answer(200, b'{"items": [1], "next": 2}', json))
        web.answer("/?ids=1,2&page=2", Answer(200, b'{"items": [2], "next": null}', json))
        request = {
            "query": {"ids": [1, 2]},
            "encoding": {"ids": {"style": "form"}},
            "pages": {
                "items": "{{ response.body['items'] }}",
                "next": "{{ {'page': response.body.next} if response.body.next else none }}",
            },
        }
        outcome = await attempt(executor, run_of({"url": web.url("/"), "request": request})[0])
        assert outcome.result == [1, 2], outcome


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"encoding": {"x": {"style": "form"}}}, "encodes x, which is not in query"),
        (
            {"query": {"x": 1}, "headers": {"x": 1}, "encoding": {"x": {"style": "simple"}}},
            "x of query as simple",
        ),
        ({"query": {"x": 1}, "encoding": {"x": {"style": "simple"}}}, "encodes x of query as simple"),
        ({"headers": {"x": "1"}, "encoding": {"x": {"style": "form"}}}, "encodes x of headers as form"),
        ({"query": {"x": 1}, "encoding": {"x": {}}}, "either style or content_type"),
        (
            {"query": {"x": 1}, "encoding": {"x": {"content_type": "a/b", "explode": True}}},
            "explode without a style",
        ),
        (
            {"query": {"x": 1}, "encoding": {"x": {"content_type": "application/json"}}},
            "content_type for x of query",
        ),
        (
            {"method": "POST", "form": {"x": 1}, "encoding": {"x": {"content_type": "text/csv"}}},
            "has the content_type text/csv",
        ),
        ({"method": "POST", "form": {}, "content_type": "a/b"}, "content_type without body or text"),
        ({"cookies": {"a": "1"}, "headers": {"Cookie": "b=1"}}, "cookies and a header Cookie"),
    ],
)
def test_wrong_encodings_are_refused(request_: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        http_action("test.wrong", "https://a.example/", options={"request": request_})
