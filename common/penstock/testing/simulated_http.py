"""The other side of HTTP actions in a simulation: the responses that a test gives to addresses, and the requests that were
sent. No socket is opened."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Any

import httpcore
import httpx
import orjson

from penstock.attempts.http import http_calls
from penstock.attempts.secret_masking import concealed_outcome
from penstock.errors import InvalidInput, NotFound
from penstock.language.definitions.http_request import HttpTls
from penstock.language.terms.redaction import concealed, hidden_forms, worth_hiding
from penstock.operate.secrets import check_secret, missing_secrets
from penstock.run.outcomes import Outcome
from penstock.run.run import Run
from penstock.testing.clock import Clock
from penstock.testing.own_loop import run_in_own_loop

REPLACED = (
    (ConnectionResetError, httpcore.ReadError),
    (ConnectionError, httpcore.ConnectError),
    (TimeoutError, httpcore.ReadTimeout),
)
"""The errors of a worker's connections for Python's own errors."""


@dataclass(frozen=True)
class SentRequest:
    """A request that an HTTP action sent."""

    method: str
    url: str
    """The whole URL, with its query."""
    headers: Mapping[str, str]
    """The headers, by lower-case name."""
    content: bytes
    at: datetime
    """The time of the simulation's clock."""

    @cached_property
    def json(self) -> Any:
        """Return the body as JSON. Raises orjson.JSONDecodeError for a body that is not JSON."""
        return orjson.loads(self.content)


@dataclass(slots=True)
class PreparedResponse:
    """A response of an address, or an error, `remaining` times (None: always)."""

    address: str
    method: str | None
    status: int
    headers: Mapping[str, str]
    content: bytes
    error: Exception | None
    takes: float
    remaining: int | None

    def fits(self, method: str, url: str) -> bool:
        """Return whether it answers a request. A query counts if the address has one, and `*` stands for any characters."""
        if self.remaining == 0 or self.method not in (None, method):
            return False
        compared = url if "?" in self.address else url.partition("?")[0]
        pattern = ".*".join(map(re.escape, self.address.split("*")))
        return re.fullmatch(pattern, compared) is not None


class SimulatedHttp:
    """The servers of a simulation, and the stored secrets that requests have."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._responses: list[PreparedResponse] = []
        self.secrets: dict[str, str] = {}
        self.requests: list[SentRequest] = []

    def respond(
        self,
        address: str,
        *,
        method: str | None,
        status: int,
        json: Any,
        text: str | None,
        content: bytes | None,
        headers: Mapping[str, str],
        raises: Exception | type[Exception] | None,
        takes: float,
        times: int | None,
    ) -> None:
        """Add a response to requests for an address. Raises InvalidInput."""
        if not 200 <= status <= 599:
            raise InvalidInput(f"{status} is not a status of a response", hint="Give one such as 200 or 404.")
        body, kind = _body(json, text, content)
        own_headers = {name.lower(): value for name, value in headers.items()}
        self._responses.append(
            PreparedResponse(
                _normal(address),
                method and method.upper(),
                status,
                {**kind, **own_headers},
                body,
                None if raises is None else _error(raises),
                takes,
                times,
            )
        )

    def put_secret(self, name: str, value: str) -> None:
        """Set a stored secret. Raises InvalidInput."""
        check_secret(name, value)
        self.secrets[name] = value

    def outcome_of(self, run: Run, named: Mapping[str, str]) -> tuple[Outcome, float]:
        """Make the requests of an attempt, and return its outcome, with the seconds that its servers took. `named` has the
        names of stored secrets that its templates read.

        Raises NotFound for a request to which the test gives no response."""
        missing = sorted(set(named.values()) - set(self.secrets))
        if missing:
            return Outcome.failed(missing_secrets("public", missing)), 0.0
        run.secrets = {name: self.secrets[stored] for name, stored in named.items()}
        exchange = _Exchange(self, self._clock, run.timeout)
        call = http_calls.call(run, exchange.connections, now=exchange.seconds_since_1970)
        try:
            outcome = run_in_own_loop(call)
        except _OutOfTime:
            outcome = Outcome.timed_out(run.timeout or 0.0)
        forms = self.forms_of(named)
        return concealed_outcome(outcome, forms, forms), exchange.elapsed

    def forms_of(self, named: Mapping[str, str]) -> Sequence[str]:
        """Return the texts that the log, the error and the result of an attempt must not show."""
        return worth_hiding(
            hidden_forms(self.secrets[name] for name in named.values() if name in self.secrets)
        )

    def conceal(self, named: Mapping[str, str], line: str) -> str:
        """Return a line of an attempt's log without its secrets."""
        return concealed(line, self.forms_of(named))

    def take(self, request: SentRequest) -> PreparedResponse:
        """Note a request, and return the first response that fits it and is not used up. Addresses with a query come before
        those without. Raises NotFound."""
        self.requests.append(request)
        for response in sorted(self._responses, key=lambda response: "?" not in response.address):
            if response.fits(request.method, request.url):
                if response.remaining is not None:
                    response.remaining -= 1
                return response
        raise NotFound(
            f"the simulation has no response left for {request.method} {request.url}",
            hint=f"Set the answer of the server: simulation.respond({request.url.partition('?')[0]!r}, json=...).",
        )


class _OutOfTime(Exception):
    """The end of an attempt at its timeout, while a server took its time."""


class _Exchange(httpcore.AsyncConnectionInterface):
    """The requests of one attempt, as connections that open no socket. `elapsed` are the seconds that its servers took."""

    def __init__(self, http: SimulatedHttp, clock: Clock, limit: float | None) -> None:
        self._http = http
        self._clock = clock
        self._limit = limit
        self.elapsed = 0.0

    def connections(self, tls: HttpTls | None = None) -> _Exchange:
        return self

    def seconds_since_1970(self) -> float:
        return self._now().timestamp()

    def _now(self) -> datetime:
        return self._clock.now + timedelta(seconds=self.elapsed)

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        """Note a request, and return its response. Raises an error of httpcore if the connection is to break."""
        method, url = request.method.decode(), request.url
        address = httpx.URL(
            scheme=url.scheme.decode(), host=url.host.decode(), port=url.port, raw_path=url.target
        )
        assert isinstance(request.stream, AsyncIterable)
        content = b"".join([chunk async for chunk in request.stream])
        headers = httpx.Headers(request.headers)
        response = self._http.take(SentRequest(method, str(address), dict(headers), content, self._now()))
        patience = request.extensions.get("timeout", {}).get("read")
        is_too_slow = patience is not None and response.takes > patience
        self.elapsed += patience if is_too_slow else response.takes
        if self._limit is not None and self.elapsed > self._limit:
            raise _OutOfTime
        if is_too_slow:
            raise httpcore.ReadTimeout("")
        if response.error is not None:
            raise response.error
        named = {"date": format_datetime(self._now(), usegmt=True), **response.headers}
        return httpcore.Response(
            response.status,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in named.items()],
            content=b"" if method == "HEAD" else response.content,
        )


def _normal(address: str) -> str:
    """Return an address in the form that URLs of requests have: with a path, and without a default port. Raises
    InvalidInput."""
    try:
        url = httpx.URL(address.replace("*", "x"))
    except httpx.InvalidURL:
        url = httpx.URL("")
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidInput(
            f"{address!r} is not an http or https URL",
            hint="Write https://host/path; * stands for any characters.",
        )
    base, mark, query = (address if "*" in address else str(url)).partition("?")
    return f"{base}{'' if base.count('/') > 2 else '/'}{mark}{query}"


def _body(json: Any, text: str | None, content: bytes | None) -> tuple[bytes, dict[str, str]]:
    """Return the body of a response, and the header with its type. Raises InvalidInput for more than one body."""
    if sum(value is not None for value in (json, text, content)) > 1:
        raise InvalidInput("the response has more than one body", hint="Give one of json, text and content.")
    if json is not None:
        return orjson.dumps(json), {"content-type": "application/json"}
    if text is not None:
        return text.encode(), {"content-type": "text/plain; charset=utf-8"}
    return content or b"", {}


def _error(raises: Exception | type[Exception]) -> Exception:
    """Return an error of a worker's connections. Raises InvalidInput for an error that no connection raises."""
    error = raises() if isinstance(raises, type) else raises
    if isinstance(error, httpcore.NetworkError | httpcore.TimeoutException | httpcore.ProtocolError):
        return error
    kind = getattr(httpcore, type(error).__name__, None) if isinstance(error, httpx.TransportError) else None
    replaced = kind or next((to for of, to in REPLACED if isinstance(error, of)), None)
    if replaced is None:
        raise InvalidInput(
            f"a connection does not raise {type(error).__name__}",
            hint="Give ConnectionError, ConnectionResetError, TimeoutError, or an error of httpx or httpcore.",
        )
    return replaced(str(error))
