"""The call of an HTTP action that is a client: requests, redirects and pages, and the result of their responses."""

from __future__ import annotations

import base64
import time
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import httpcore
import httpx
import orjson

from penstock.attempts.http import http_answers
from penstock.attempts.http.http_answers import shown
from penstock.attempts.http.http_request import Request, built, namespace_of, with_query
from penstock.attempts.http.link_header import links_of
from penstock.errors import AddressRefused, DefinitionError, InvalidInput, ResultNotStorable
from penstock.language.definitions.http_request import HttpRequest, HttpTls
from penstock.language.definitions.program_actions import HttpOptions
from penstock.language.expressions import render
from penstock.run.cut_texts import cut_end
from penstock.run.result_encoding import refuse_large_integers
from penstock.run.task_executors import Outcome, Run
from penstock.service.charsets import charset_of, decoded

KEEPS_METHOD = frozenset({307, 308})
TURNS_TO_GET = frozenset({301, 302, 303})
LONGEST_BODY = 32 * 1024 * 1024
"""The most bytes of one response that are read, before a template takes the result from it."""
_ENCODINGS = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


class Pool(Protocol):
    """The connections of requests, as `httpcore.AsyncConnectionPool` has them."""

    def stream(
        self,
        method: str,
        url: httpcore.URL,
        *,
        headers: Sequence[tuple[bytes, bytes]] | Sequence[tuple[str, str]],
        content: bytes,
        extensions: MutableMapping[str, Any],
    ) -> AbstractAsyncContextManager[httpcore.Response]:
        """Send a request, and return its response. Raises the errors of httpcore."""


Connections = Callable[[HttpTls | None], Pool]
"""A function that returns the connections for these options of TLS."""


class Response:
    """A whole response."""

    __slots__ = ("body", "content", "headers", "status", "url")

    def __init__(self, url: httpx.URL, status: int, headers: httpx.Headers, content: bytes) -> None:
        self.url = url
        self.status = status
        self.headers = headers
        self.content = content
        self.body: Any = None

    def namespace(self) -> dict[str, Any]:
        """Return the response as templates read it. Names of headers are lower-case, with `_` for `-`. `links` has the
        URLs of the header `Link`, by relation in lower case."""
        return {
            "status": self.status,
            "url": str(self.url),
            "headers": {name.lower().replace("-", "_"): value for name, value in self.headers.items()},
            "links": links_of(self.headers, self.url),
            "body": self.body,
        }


async def call(
    run: Run,
    options: HttpOptions,
    request: HttpRequest,
    params: Mapping[str, Any],
    connections: Connections,
    folder: Path | None,
) -> Outcome:
    """Make the request of an attempt, and those of further pages. Raises the errors of httpcore, AddressRefused,
    ExpressionError, InvalidInput, DefinitionError, ConfigurationError, ResultNotStorable."""
    namespace = namespace_of(run, params)
    prepared = built(run, options, request, namespace, folder)
    exchange = _Exchange(run, options, request, connections(request.tls))
    response = await exchange.send(prepared)
    if not _matches(response.status, request.expect):
        return http_answers.failed(
            f"{prepared.method} {shown(response.url)}",
            response.status,
            response.headers,
            response.content,
            retryable=_matches(response.status, request.retry),
        )
    response.body = _decoded(response, request)
    namespace["response"] = response.namespace()
    if request.pages is None:
        result = response.body
    else:
        collected = await _pages(exchange, prepared, response, namespace)
        if isinstance(collected, Outcome):
            return collected
        result = namespace["items"] = collected
    if request.result is not None:
        result = render(request.result, namespace)
    return Outcome.returned(result, run.result_limit)


class _Exchange:
    """The requests of one attempt."""

    def __init__(self, run: Run, options: HttpOptions, request: HttpRequest, pool: Pool) -> None:
        self._run = run
        self._options = options
        self.request = request
        self._pool = pool

    async def send(self, request: Request) -> Response:
        """Send a request, follow its redirects, and return the response."""
        options, method, url, content = self._options, request.method, request.url, request.content
        timeout = {"connect": options.connect_timeout, "read": options.timeout, "write": options.timeout}
        content_type = request.content_type
        for _ in range(self.request.redirects + 1):
            ours = self._ours(content, content_type)
            own = request.headers if _origin(url) == _origin(request.url) else {}
            named = {name.lower() for name in own}
            headers = [
                *own.items(),
                *((name, value) for name, value in ours.items() if name.lower() not in named),
            ]
            began = time.monotonic()
            with http_answers.reaching(method, url):
                async with self._pool.stream(
                    method,
                    core_url(url),
                    headers=[(name.encode("latin-1", "replace"), value.encode()) for name, value in headers],
                    content=content,
                    extensions={"timeout": timeout},
                ) as answer:
                    response_headers = httpx.Headers(answer.headers)
                    elapsed = time.monotonic() - began
                    self._run.log("log", f"{method} {shown(url)}: {answer.status} after {elapsed:.3f} s")
                    redirects = KEEPS_METHOD | TURNS_TO_GET if "location" in response_headers else frozenset()
                    if answer.status not in redirects or _matches(answer.status, self.request.expect):
                        body = await _read(answer, response_headers)
                        return Response(url, answer.status, response_headers, body)
            onward = http_answers.onward(url, response_headers)
            if answer.status in TURNS_TO_GET and method not in ("GET", "HEAD"):
                if answer.status != 303 and method != "POST":
                    raise DefinitionError(
                        f"{method} {shown(url)} is redirected with {answer.status} to {shown(onward)}",
                        hint="Name the new URL: a redirect of this status would change the method.",
                    )
                method, content, content_type = "GET", b"", None
            elif content and _origin(onward) != _origin(url):
                raise AddressRefused(
                    f"{shown(url)} redirects a request with a body to another host, {shown(onward)}",
                    hint="Name the new URL, if the data may go there.",
                )
            url = onward
        raise DefinitionError(
            f"{shown(request.url)} redirects more than {self.request.redirects} times",
            hint="Name the last URL, or raise redirects.",
        )

    def _ours(self, content: bytes, content_type: str | None) -> dict[str, str]:
        headers = {
            "Accept": "application/json, */*;q=0.5",
            "Accept-Encoding": "gzip",
            "User-Agent": "penstock",
        }
        if content_type is not None:
            headers["Content-Type"] = content_type
        if content or self.request.method in ("POST", "PUT", "PATCH"):
            headers["Content-Length"] = str(len(content))
        return {**headers, **self._run.trace}


async def _pages(
    exchange: _Exchange, first: Request, response: Response, namespace: dict[str, Any]
) -> list[Any] | Outcome:
    """Return the items of all pages, or the failure of one. `response` is the first page."""
    pages, items = exchange.request.pages, []
    assert pages is not None
    visited = {str(first.url)}
    for number in range(1, pages.max_pages + 1):
        page = render(pages.items, namespace)
        if not isinstance(page, list):
            raise InvalidInput(
                f"page {number} has no list of items, but {type(page).__name__}",
                hint="Correct pages.items: it gives the list of one page.",
            )
        items += page
        if len(items) > 10_000_000:
            raise ResultNotStorable("the pages have more than 10,000,000 items")
        following = render(pages.next, namespace)
        if not following:
            return items
        if number == pages.max_pages:
            break
        url = _following(response.url, first.url, following)
        if str(url) in visited:
            raise InvalidInput(
                f"page {number} names itself or an earlier page as the next page", hint="Correct pages.next."
            )
        visited.add(str(url))
        response = await exchange.send(
            Request(first.method, url, first.headers, first.content, first.content_type)
        )
        if not _matches(response.status, exchange.request.expect):
            return http_answers.failed(
                f"{first.method} {shown(response.url)}",
                response.status,
                response.headers,
                response.content,
                retryable=_matches(response.status, exchange.request.retry),
            )
        response.body = _decoded(response, exchange.request)
        namespace["response"] = response.namespace()
    raise InvalidInput(
        f"there are more than {pages.max_pages} pages",
        hint="Raise pages.max_pages, or request less data with the query.",
    )


def _following(url: httpx.URL, first: httpx.URL, following: Any) -> httpx.URL:
    if isinstance(following, Mapping):
        return with_query(first, following)
    try:
        onward = url.join(str(following))
    except httpx.InvalidURL:
        raise InvalidInput(
            f"the next page is {cut_end(str(following), 100)!r}, which is not a URL",
            hint="Correct pages.next.",
        ) from None
    if _origin(onward) != _origin(first):
        raise AddressRefused(
            f"the next page is on another host, {onward.host}",
            hint="Pages are read from the action's own host only.",
        )
    return onward


def core_url(url: httpx.URL) -> httpcore.URL:
    """Return a URL in the form that connections take."""
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _matches(status: int, statuses: Sequence[int | str]) -> bool:
    return any(
        status == entry if isinstance(entry, int) else entry[0] == str(status)[0] for entry in statuses
    )


async def _read(answer: httpcore.Response, headers: httpx.Headers) -> bytes:
    """Return the body of a response, decompressed. Raises ResultNotStorable for one that is too large, also after its
    decompression, or has an encoding that was not asked for."""
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding in ("identity", ""):
        decompress = None
    elif encoding in _ENCODINGS:
        decompress = _Decompression(encoding)
    else:
        raise ResultNotStorable(f"the response has the encoding {encoding}, which was not requested")
    body = bytearray()
    try:
        async for piece in answer.aiter_stream():
            body += (
                piece if decompress is None else decompress.decompress(piece, LONGEST_BODY + 1 - len(body))
            )
            if len(body) > LONGEST_BODY:
                raise ResultNotStorable(
                    f"the response has more than {LONGEST_BODY:,} bytes",
                    hint="Request less data, with a query or with pages.",
                )
    except zlib.error as error:
        raise ResultNotStorable(
            f"the response is not {encoding}, although its header says so: {error}"
        ) from None
    if decompress is not None and decompress.is_open:
        raise httpcore.RemoteProtocolError(f"the {encoding} body ends too early")
    return bytes(body)


class _Decompression:
    """The decompression of one body. A gzip body may have several members, one after the other (RFC 1952, 2.2)."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._member = zlib.decompressobj(_ENCODINGS[encoding])
        self.is_open = False
        """A member has begun and not ended."""

    def decompress(self, piece: bytes, limit: int) -> bytes:
        """Return the decompressed bytes of the next piece, at most `limit`. Raises zlib.error."""
        result = b""
        while piece and len(result) < limit:
            if self._member.eof:
                piece = piece.lstrip(b"\0")  # some files are padded with zeros up to the end of a block
                if not piece:
                    break
                if self._encoding == "deflate":
                    raise zlib.error("bytes follow its end")
                self._member = zlib.decompressobj(_ENCODINGS[self._encoding])
            result += self._member.decompress(piece, limit - len(result))
            piece = self._member.unused_data
            self.is_open = not self._member.eof
        return result


def _decoded(response: Response, request: HttpRequest) -> Any:
    """Return the body in the form that the action asks for. Raises ResultNotStorable for a body of another form."""
    content, kind = response.content, request.answer
    media, _, options = response.headers.get("content-type", "").partition(";")
    media = media.strip().lower()
    if kind == "none" or not content.strip() or request.method == "HEAD":
        return None
    is_json = media == "application/json" or media.endswith("+json")
    if kind == "json" or (kind == "auto" and is_json):
        try:
            return _parsed(content)
        except orjson.JSONDecodeError as error:
            raise ResultNotStorable(
                f"the response is not JSON, but {media or 'of no type'}: {error}",
                hint="If the server sends text, set answer: text.",
            ) from None
    if kind == "text" or (kind == "auto" and _is_text(media)):
        return decoded(content, charset_of(options)).replace("\0", "�")
    if kind == "auto" and not media:
        try:
            return _parsed(content)
        except orjson.JSONDecodeError:
            return decoded(content, None).replace("\0", "�")
    return base64.b64encode(content).decode()


def _parsed(content: bytes) -> Any:
    content = content.removeprefix(BOM_UTF8)  # RFC 8259, 8.1: a parser may ignore it
    document = orjson.loads(content)
    refuse_large_integers(content, "the response")
    return document


def _is_text(media: str) -> bool:
    return (
        media.startswith("text/")
        or media.endswith("+xml")
        or media
        in (
            "application/xml",
            "application/x-www-form-urlencoded",
            "application/yaml",
            "application/javascript",
            "application/x-ndjson",
        )
    )
