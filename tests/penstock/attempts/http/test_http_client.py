"""HTTP actions that are clients, against a server with forty odd behaviours."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from penstock.errors import DefinitionError
from penstock.language.definitions.program_actions import http_action
from penstock.run.task_executors import Outcome, attempt
from penstock_worker.executors.http.http import HttpExecutor
from tests.penstock_worker.executors.runs import Lines, run_of
from tests.penstock_worker.executors.web import Answer, Request, Web, serving


@pytest.fixture
async def web() -> AsyncIterator[Web]:
    async with serving() as web:
        yield web


@pytest.fixture
async def executor(tmp_path: Path) -> AsyncIterator[HttpExecutor]:
    executor = HttpExecutor(allow=["127.0.0.1"], files=str(tmp_path))
    await executor.open()
    yield executor
    await executor.close(0)


async def ask(
    executor: HttpExecutor,
    url: str,
    request: dict[str, Any] | None = None,
    params: dict[str, Any] | None = None,
    secrets: dict[str, str] | None = None,
    **options: Any,
) -> tuple[Outcome, Lines]:
    run, lines = run_of({"url": url, "request": request or {}, **options}, params, secrets=secrets or {})
    return await attempt(executor, run), lines


async def test_url_query_headers_and_secrets_are_templates(executor: HttpExecutor, web: Web) -> None:
    target = "/orders/a%2Fb%3F%20c/items?x=1&page=2&tag=a&tag=b&all=true"
    web.answer(target, Answer(200, b'{"ok": 1}', {"Content-Type": "application/json"}))
    outcome, lines = await ask(
        executor,
        web.url("/orders/{{ parameters.id }}/items?x=1"),
        {
            "query": {
                "page": "{{ parameters.page }}",
                "tag": ["a", "b"],
                "all": True,
                "none": "{{ parameters.none }}",
            },
            "headers": {"Authorization": "Bearer {{ secrets.token }}", "X-Tenant": "{{ execution.tenant }}"},
        },
        {"id": "a/b? c", "page": 2, "none": None},
        {"token": "s3cret-s3cret"},
    )
    assert outcome.result == {"ok": 1}
    (request,) = web.requests
    assert (request.method, request.path) == ("GET", target)
    assert request.headers["authorization"] == "Bearer s3cret-s3cret"
    assert request.headers["x-tenant"] == "public"
    assert "idempotency-key" not in request.headers
    assert "s3cret" not in str(lines)


@pytest.mark.parametrize("id", ["", ".", "..", None])
async def test_empty_part_of_the_url_is_refused(executor: HttpExecutor, web: Web, id: str | None) -> None:
    outcome, _ = await ask(executor, web.url("/orders/{{ parameters.id }}"), {"method": "DELETE"}, {"id": id})
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("InvalidInput", False)
    assert web.requests == []


async def test_bodies_as_json_form_text_and_files(executor: HttpExecutor, web: Web, tmp_path: Path) -> None:
    web.answer("/", Answer(204))
    (tmp_path / "report.txt").write_text("the report")
    params = {"n": 7, "names": ["a", "b"]}
    bodies: list[dict[str, Any]] = [
        {"body": {"order": "{{ parameters.n }}", "names": "{{ parameters.names }}"}},
        {"form": {"order": "{{ parameters.n }}", "name": "{{ parameters.names }}"}},
        {"text": "order {{ parameters.n }}", "content_type": "text/csv"},
        {
            "form": {"order": "{{ parameters.n }}"},
            "files": {
                "data": {
                    "content": "{{ parameters.names }}",
                    "type": "application/json",
                    "filename": "n.json",
                },
                "report": {"path": "report.txt"},
            },
        },
    ]
    for body in bodies:
        outcome, _ = await ask(executor, web.url("/"), {"method": "POST", **body}, params)
        assert outcome.kind == "completed", outcome
    as_json, form, text, multipart = web.requests
    assert as_json.json == {"order": 7, "names": ["a", "b"]}
    assert as_json.headers["idempotency-key"]
    assert parse_qs(form.body.decode()) == {"order": ["7"], "name": ["a", "b"]}
    assert form.headers["content-type"] == "application/x-www-form-urlencoded"
    assert (text.body, text.headers["content-type"]) == (b"order 7", "text/csv")
    assert multipart.headers["content-type"].startswith("multipart/form-data; boundary=")
    for part in (
        b'name="order"',
        b'filename="n.json"',
        b'["a","b"]',
        b'filename="report.txt"',
        b"the report",
    ):
        assert part in multipart.body


async def test_files_outside_of_the_folder_are_refused(
    executor: HttpExecutor, web: Web, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to("/etc/hostname")
    for path, kind in (("link", "DefinitionError"), ("missing", "ConfigurationError")):
        outcome, _ = await ask(executor, web.url("/"), {"method": "POST", "files": {"f": {"path": path}}})
        assert outcome.error is not None
        assert outcome.error.type == kind
    bare = HttpExecutor(allow=["127.0.0.1"])
    outcome, _ = await ask(bare, web.url("/"), {"method": "POST", "files": {"f": {"path": "link"}}})
    assert outcome.error is not None
    assert "sends no files" in outcome.error.message
    assert web.requests == []


async def test_result_is_taken_from_the_response(executor: HttpExecutor, web: Web) -> None:
    answer = Answer(201, b'{"id": 7, "state": "new"}', {"Content-Type": "application/json", "ETag": "w1"})
    web.answer("/", answer)
    outcome, _ = await ask(
        executor,
        web.url("/"),
        {
            "method": "POST",
            "result": {
                "id": "{{ response.body.id }}",
                "tag": "{{ response.headers.etag }}",
                "status": "{{ response.status }}",
            },
        },
    )
    assert outcome.result == {"id": 7, "tag": "w1", "status": 201}


async def test_expected_and_retried_statuses(executor: HttpExecutor, web: Web) -> None:
    cases: list[tuple[int, dict[str, Any], str, bool | None]] = [
        (404, {"expect": ["2xx", 404]}, "completed", None),
        (200, {"expect": [201]}, "failed", False),
        (409, {"retry": [409]}, "failed", True),
        (503, {"retry": [409]}, "failed", False),
        (304, {"expect": ["3xx"]}, "completed", None),
    ]
    for status, request, kind, retryable in cases:
        web.answer("/", Answer(status))
        outcome, _ = await ask(executor, web.url("/"), request)
        assert (outcome.kind, outcome.error and outcome.error.retryable) == (kind, retryable), status


async def test_pages_by_link_cursor_and_number(executor: HttpExecutor, web: Web) -> None:
    def page(items: list[int], next_cursor: str | None, link: str | None) -> Answer:
        headers = {"Content-Type": "application/json"} | ({"Link": f'<{link}>; rel="next"'} if link else {})
        return Answer(200, json.dumps({"items": items, "next": next_cursor}).encode(), headers)

    web.answer("/list?size=2", page([1, 2], "c2", "/list?size=2&page=2"))
    web.answer("/list?size=2&page=2", page([3], None, None))
    web.answer("/list?size=2&cursor=c2", page([4], None, None))
    for following, items in (
        ("{{ response.links.next if 'next' in response.links else none }}", [1, 2, 3]),
        ("{{ {'cursor': response.body.next} if response.body.next else none }}", [1, 2, 4]),
    ):
        outcome, _ = await ask(
            executor,
            web.url("/list"),
            {"query": {"size": 2}, "pages": {"items": "{{ response.body['items'] }}", "next": following}},
        )
        assert outcome.result == items, outcome
    outcome, _ = await ask(
        executor,
        web.url("/list"),
        {
            "query": {"size": 2},
            "pages": {
                "items": "{{ response.body['items'] }}",
                "next": "{{ response.body.next and {'cursor': 'c2'} }}",
            },
            "result": "{{ items | length }}",
        },
    )
    assert outcome.result == 3


@pytest.mark.parametrize(
    ("following", "message"),
    [
        ("/loop", "names itself"),
        ("http://example.com/loop", "on another host"),
        ("/loop?{{ response.body.n }}", "more than 3 pages"),
    ],
)
async def test_pages_end(executor: HttpExecutor, web: Web, following: str, message: str) -> None:
    count = 0

    async def loop(request: Request) -> Answer:
        nonlocal count
        count += 1
        return Answer(200, json.dumps({"n": count}).encode(), {"Content-Type": "application/json"})

    web.routes |= dict.fromkeys(("/loop", "/loop?1", "/loop?2", "/loop?3"), loop)
    outcome, _ = await ask(
        executor, web.url("/loop"), {"pages": {"items": "{{ [1] }}", "next": following, "max_pages": 3}}
    )
    assert outcome.error is not None
    assert message in outcome.error.message


@dataclass(frozen=True)
class Odd:
    """An odd behaviour: the bytes of a whole response, and the outcome of the attempt. `expected` is the result, or the
    type of the error with its `retryable`. `pieces`: the bytes come in so many parts."""

    name: str
    sent: bytes
    expected: Any
    request: dict[str, Any] | None = None
    pieces: int = 1
    then: float = 0.0


def http(status: str, headers: str = "", body: bytes = b"", *, length: bool = True) -> bytes:
    sized = f"Content-Length: {len(body)}\r\n" if length else ""
    return f"HTTP/1.1 {status}\r\n{headers}{sized}Connection: close\r\n\r\n".encode() + body


J = "Content-Type: application/json\r\n"
CHUNKED = J + "Transfer-Encoding: chunked\r\n"
GZIP = gzip.compress(b'{"a": 1}')
TWO_MEMBERS = gzip.compress(b'{"a": 1') + gzip.compress(b"2}")
BOMB = gzip.compress(b" " * (40 * 1024 * 1024))
FAILED = ("HttpStatus", False)
RETRIED = ("HttpStatus", True)
ODD = [
    Odd("plain", http("200 OK", J, b'{"a": 1}'), {"a": 1}),
    Odd("slow-bytes", http("200 OK", J, b'{"a": 1}'), {"a": 1}, pieces=20),
    Odd("chunked", http("200 OK", CHUNKED, b'4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n', length=False), {"a": 1}),
    Odd(
        "chunked-slowly",
        http("200 OK", CHUNKED, b'4\r\n{"a"\r\n4\r\n: 1}\r\n0\r\n\r\n', length=False),
        {"a": 1},
        pieces=15,
    ),
    Odd("chunk-cut", http("200 OK", CHUNKED, b'4\r\n{"a"\r\n9\r\n', length=False), ("HttpUnreachable", None)),
    Odd("chunk-wrong", http("200 OK", CHUNKED, b"zz\r\n", length=False), ("HttpUnreachable", None)),
    Odd("until-closed", http("200 OK", J, b'{"a": 1}', length=False), {"a": 1}),
    Odd("length-too-long", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", ("HttpUnreachable", None)),
    Odd("length-wrong", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}", ("HttpUnreachable", None)),
    Odd("nothing", b"", ("HttpUnreachable", None)),
    Odd("not-http", b"SSH-2.0-OpenSSH_9\r\n", ("HttpUnreachable", None)),
    Odd("half-a-header", b"HTTP/1.1 200 OK\r\nContent-", ("HttpUnreachable", None)),
    Odd("header-without-colon", b"HTTP/1.1 200 OK\r\nnonsense\r\n\r\n", ("HttpUnreachable", None)),
    Odd("huge-header", b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n", ("HttpUnreachable", None)),
    Odd("continue-first", b"HTTP/1.1 100 Continue\r\n\r\n" + http("200 OK", J, b"1"), 1),
    Odd("early-hints", b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + http("200 OK", J, b"1"), 1),
    Odd("http-1.0", b"HTTP/1.0 200 OK\r\n\r\nhello", "hello"),
    Odd("no-type-json", http("200 OK", "", b"[1]"), [1]),
    Odd("no-type-text", http("200 OK", "", b"hello"), "hello"),
    Odd("html-as-json", http("200 OK", J, b"<html>"), ("ResultNotStorable", False)),
    Odd("html", http("200 OK", "Content-Type: text/html\r\n", b"<p>"), "<p>"),
    Odd(
        "html-where-json-is-wanted",
        http("200 OK", "Content-Type: text/html\r\n", b"<p>"),
        ("ResultNotStorable", False),
        {"answer": "json"},
    ),
    Odd("json-as-text", http("200 OK", "Content-Type: text/plain\r\n", b"[1]"), [1], {"answer": "json"}),
    Odd(
        "problem-json",
        http("200 OK", "Content-Type: application/problem+json; charset=utf-8\r\n", b'{"a": 1}'),
        {"a": 1},
    ),
    Odd("latin-1", http("200 OK", "Content-Type: text/plain; charset=latin-1\r\n", b"\xe9"), "é"),
    Odd(
        "unknown-charset", http("200 OK", "Content-Type: text/plain; charset=klingon\r\n", "é".encode()), "é"
    ),
    Odd("idna", http("200 OK", "Content-Type: text/plain; charset=idna\r\n", "é".encode()), "é"),
    Odd("undefined", http("200 OK", "Content-Type: text/plain; charset=undefined\r\n", b"a"), "a"),
    Odd("utf-7", http("200 OK", "Content-Type: text/plain; charset=utf-7\r\n", b"+2AA-"), "+2AA-"),
    Odd("mark", http("200 OK", "Content-Type: text/plain; charset=utf-8\r\n", b"\xef\xbb\xbfa"), "a"),
    Odd("mark-in-json", http("200 OK", J, b"\xef\xbb\xbf[1]"), [1]),
    Odd("mark-alone", http("200 OK", J, b"\xef\xbb\xbf"), ("ResultNotStorable", False)),
    Odd(
        "long-host",
        http("302 Found", f"Location: http://{'a' * 64}.example/\r\n", b""),
        ("AddressRefused", False),
    ),
    Odd("nul-in-text", http("200 OK", "Content-Type: text/plain\r\n", b"a\0b"), "a�b"),
    Odd("nul-in-json", http("200 OK", J, b'"a\\u0000b"'), ("ResultNotStorable", False)),
    Odd("nan", http("200 OK", J, b"NaN"), ("ResultNotStorable", False)),
    Odd("integer-of-100-bits", http("200 OK", J, b"[%d]" % 2**100), ("ResultNotStorable", False)),
    Odd(
        "integer-of-100-bits-without-type", http("200 OK", "", b"[%d]" % 2**100), ("ResultNotStorable", False)
    ),
    Odd("binary", http("200 OK", "Content-Type: image/png\r\n", b"\x89P"), "iVA="),
    Odd("empty", http("200 OK", J), None),
    Odd("no-content", b"HTTP/1.1 204 No Content\r\n\r\n", None),
    Odd("gzip", http("200 OK", J + "Content-Encoding: gzip\r\n", GZIP), {"a": 1}),
    Odd("deflate", http("200 OK", J + "Content-Encoding: deflate\r\n", zlib.compress(b"1")), 1),
    Odd("gzip-members", http("200 OK", J + "Content-Encoding: gzip\r\n", TWO_MEMBERS), {"a": 12}),
    Odd(
        "gzip-members-in-pieces",
        http("200 OK", J + "Content-Encoding: gzip\r\n", TWO_MEMBERS + bytes(512)),
        {"a": 12},
        pieces=40,
    ),
    Odd(
        "gzip-cut-member",
        http("200 OK", J + "Content-Encoding: gzip\r\n", TWO_MEMBERS[:-6]),
        ("HttpUnreachable", None),
    ),
    Odd(
        "gzip-cut-header",
        http("200 OK", J + "Content-Encoding: gzip\r\n", GZIP[:8]),
        ("HttpUnreachable", None),
    ),
    Odd(
        "gzip-and-more",
        http("200 OK", J + "Content-Encoding: gzip\r\n", GZIP + b"more"),
        ("ResultNotStorable", False),
    ),
    Odd(
        "deflate-and-more",
        http("200 OK", J + "Content-Encoding: deflate\r\n", zlib.compress(b"1") + b"more"),
        ("ResultNotStorable", False),
    ),
    Odd("gzip-cut", http("200 OK", J + "Content-Encoding: gzip\r\n", GZIP[:-6]), ("HttpUnreachable", None)),
    Odd(
        "gzip-that-is-none",
        http("200 OK", J + "Content-Encoding: gzip\r\n", b"{}"),
        ("ResultNotStorable", False),
    ),
    Odd("gzip-bomb", http("200 OK", J + "Content-Encoding: gzip\r\n", BOMB), ("ResultNotStorable", False)),
    Odd("brotli", http("200 OK", J + "Content-Encoding: br\r\n", b"x"), ("ResultNotStorable", False)),
    Odd("redirect-to-nowhere", http("302 Found", "Location: http://[\r\n"), ("DefinitionError", False)),
    Odd(
        "redirect-to-a-file",
        http("302 Found", "Location: file://host/etc/passwd\r\n"),
        ("AddressRefused", False),
    ),
    Odd(
        "redirect-to-metadata",
        http("302 Found", "Location: http://169.254.169.254/\r\n"),
        ("AddressRefused", False),
    ),
    Odd("redirect-to-itself", http("302 Found", "Location: /\r\n"), ("DefinitionError", False)),
    Odd("redirect-without-place", http("302 Found"), FAILED),
    Odd("too-many", http("429 Too Many Requests", "Retry-After: 7\r\n"), (*RETRIED, 7.0)),
    Odd(
        "too-many-until-a-date",
        http(
            "429 Too Many Requests",
            "Date: Tue, 01 Jan 2030 00:00:00 GMT\r\nRetry-After: Tue, 01 Jan 2030 00:01:30 GMT\r\n",
        ),
        (*RETRIED, 90.0),
    ),
    Odd("too-many-nonsense", http("429 Too Many Requests", "Retry-After: soon\r\n"), (*RETRIED, None)),
    Odd(
        "too-many-long-ago",
        http(
            "503 X", "Date: Tue, 01 Jan 2030 00:00:00 GMT\r\nRetry-After: Mon, 31 Dec 2029 00:00:00 GMT\r\n"
        ),
        (*RETRIED, 0.0),
    ),
    Odd("teapot", http("418 Teapot", "", b"short and stout"), FAILED),
    Odd("odd-status", http("599 Odd"), RETRIED),
    Odd("silence", b"", ("HttpUnreachable", None), then=60.0),
]


@asynccontextmanager
async def sending(odd: Odd) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            step = max(1, len(odd.sent) // odd.pieces)
            for at in range(0, len(odd.sent), step):
                writer.write(odd.sent[at : at + step])
                await writer.drain()
                if odd.pieces > 1:
                    await asyncio.sleep(0.001)
            await asyncio.sleep(odd.then)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
async def test_odd_behaviours(executor: HttpExecutor, odd: Odd) -> None:
    async with sending(odd) as port:
        outcome, _ = await ask(
            executor, f"http://127.0.0.1:{port}/", odd.request, timeout=0.3 if odd.then else 20
        )
    if not isinstance(odd.expected, tuple):
        assert (outcome.kind, outcome.result) == ("completed", odd.expected), outcome
        return
    assert outcome.error is not None, outcome
    kind, retryable, *after = odd.expected
    assert (outcome.error.type, outcome.error.retryable) == (kind, retryable), outcome
    assert not after or outcome.error.retry_after == after[0]


async def test_failure_names_last_request_without_query(executor: HttpExecutor, web: Web) -> None:
    address = "/bills?token=opensesame"
    web.answer("/", Answer(302, b"", {"Location": address}))
    web.answer(address, Answer(404), Answer(302, b"", {"Location": address}))
    outcome, _ = await ask(executor, web.url("/"), {"method": "GET"})
    assert outcome.error is not None
    assert outcome.error.message == f"GET {web.url('/bills')}: the answer is 404"
    outcome, _ = await ask(executor, web.url(address), {"method": "GET"})
    assert outcome.error is not None
    assert "redirects more than" in outcome.error.message
    assert "opensesame" not in outcome.error.message


async def test_redirects_keep_headers_on_their_own_host_alone(executor: HttpExecutor, web: Web) -> None:
    async with serving() as other:
        other.answer("/there", Answer(200, b"1", {"Content-Type": "application/json"}))
        web.answer("/here", Answer(200, b"2", {"Content-Type": "application/json"}))
        headers = {"headers": {"Authorization": "Bearer x"}}
        web.answer("/", Answer(302, b"", {"Location": other.url("/there")}))
        outcome, _ = await ask(executor, web.url("/"), headers)
        assert outcome.result == 1
        assert "authorization" not in other.requests[0].headers
        web.answer("/", Answer(302, b"", {"Location": "/here"}))
        outcome, _ = await ask(executor, web.url("/"), headers)
        assert outcome.result == 2
        assert web.requests[-1].headers["authorization"] == "Bearer x"
        for status, method, expected in ((303, "POST", "GET"), (302, "POST", "GET"), (307, "POST", "POST")):
            web.answer("/", Answer(status, b"", {"Location": "/here"}))
            outcome, _ = await ask(executor, web.url("/"), {"method": method, "body": {"a": 1}})
            assert (outcome.result, web.requests[-1].method) == (2, expected)
        web.answer("/", Answer(301, b"", {"Location": "/here"}))
        outcome, _ = await ask(executor, web.url("/"), {"method": "DELETE"})
        assert outcome.error is not None
        assert "would change the method" in outcome.error.message
        web.answer("/", Answer(307, b"", {"Location": other.url("/there")}))
        outcome, _ = await ask(executor, web.url("/"), {"method": "POST", "body": {"a": 1}})
        assert outcome.error is not None
        assert outcome.error.type == "AddressRefused"


async def test_private_addresses_are_refused(web: Web) -> None:
    outcome, _ = await ask(HttpExecutor(), web.url("/"))
    assert outcome.error is not None
    assert outcome.error.type == "AddressRefused"
    assert web.requests == []


async def test_missing_files_of_tls_are_told(executor: HttpExecutor) -> None:
    outcome, _ = await ask(executor, "https://127.0.0.1:1/", {"tls": {"ca": "/nowhere/ca.pem"}})
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("ConfigurationError", None)


@pytest.mark.parametrize(
    ("url", "options", "message"),
    [
        ("https://{{ parameters.host }}/x", {"request": {}}, "expression in its host"),
        ("https://a.example/{{ parameters.x }}", {}, "but no request"),
        ("https://a.example/{{ parameters. }}", {"request": {}}, "url"),
        ("https://a.example/", {"request": {"method": "GET", "body": {"a": 1}}}, "GET with a body"),
        ("https://a.example/", {"request": {"method": "POST", "body": 1, "text": "x"}}, "more than one body"),
        ("https://a.example/", {"request": {"headers": {"Host": "b"}}}, "which Penstock sets"),
        ("https://a.example/", {"request": {"expect": ["9xx"]}}, "class of statuses"),
        (
            "https://a.example/",
            {"request": {"files": {"f": {"path": "../x"}}, "method": "POST"}},
            "outside of the folder",
        ),
        ("https://a.example/", {"request": {"qeury": {}}}, "qeury"),
        ("https://a.example/", {"secrets": {"a": "b"}}, "has secrets, but no request"),
        ("https://a.example/", {"request": {"tls": {"key": "k"}}}, "key without a certificate"),
    ],
)
def test_wrong_requests_are_refused_where_they_are_written(
    url: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(DefinitionError, match=message):
        http_action("test.wrong", url, options=options)
