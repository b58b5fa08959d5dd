"""The meaning of an HTTP action's answer."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import httpcore
import httpx

from penstock.errors import AddressRefused, DefinitionError, ResultNotStorable
from penstock.run.task_executors import Outcome, Run, TaskError

RETRYABLE = frozenset({408, 425, 429})
"""The statuses besides 500 and above that are retried."""
LONGEST_RETRY_AFTER = 24 * 3600.0


async def read(response: httpcore.Response, answer: httpx.Headers, limit: int) -> tuple[bytes, bool]:
    """Return the body of an answer, and whether it is complete."""
    if answer.get("content-encoding", "identity") != "identity":
        raise ResultNotStorable(
            f"the answer has the encoding {answer['content-encoding']}, which was not requested",
            hint="Send the answer as plain JSON.",
        )
    body = bytearray()
    async for piece in response.aiter_stream():
        body += piece
        if len(body) > limit:
            return bytes(body[:limit]), False
    return bytes(body), True


def shown(url: httpx.URL) -> str:
    """Return a URL for a log line or an error, without its query and its password, which may be secrets."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


class Unreachable(Exception):
    """The failure of a request that got no response. `call` is its method and URL."""

    def __init__(self, call: str, error: Exception) -> None:
        kind = type(error).__name__
        super().__init__(f"{call}: the address could not be reached or fell silent: {kind}: {error}")
        self.kind = kind
        self.is_before_request = isinstance(error, httpcore.ConnectError | httpcore.ConnectTimeout)

    def outcome(self) -> Outcome:
        """Return the outcome, which is retried if the request was not sent. Otherwise the retry policy decides."""
        retryable = True if self.is_before_request else None
        kinds = ("HttpUnreachable", self.kind)
        return Outcome.failed(TaskError("HttpUnreachable", str(self), "", retryable, kinds=kinds))


@contextmanager
def reaching(method: str, url: httpx.URL) -> Iterator[None]:
    """Name the request in the error of a connection. Raises Unreachable if the server cannot be reached, or the
    connection breaks."""
    try:
        yield
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        raise Unreachable(f"{method} {shown(url)}", error) from error


def outcome(
    run: Run, url: httpx.URL, status: int, answer: httpx.Headers, body: bytes, whole: bool
) -> Outcome:
    if 200 <= status < 300:
        if not whole:
            raise ResultNotStorable(
                f"the answer has more than the {run.result_limit:,} bytes that are stored",
                hint="Put large results in an object store and answer with a link.",
            )
        return Outcome.returned_json(body, run.result_limit) if body.strip() else Outcome.returned(None)
    return failed(f"POST {shown(url)}", status, answer, body, retryable=status in RETRYABLE or status >= 500)


def failed(call: str, status: int, answer: httpx.Headers, body: bytes, *, retryable: bool) -> Outcome:
    """Return the outcome of a response to `call`, a method and URL, with another status than the expected ones."""
    error = TaskError(
        "HttpStatus",
        f"{call}: the answer is {status}",
        answer={"status": status, "body": body.decode("utf-8", "replace")},
        retryable=retryable,
        retry_after=_retry_after(answer) if retryable else None,
        kinds=("HttpStatus", f"HttpStatus{status}"),
    )
    return Outcome.failed(error)


def _retry_after(answer: httpx.Headers) -> float | None:
    """Return the seconds of `Retry-After` in either form of RFC 9110 (10.2.3), or None."""
    value = answer.get("retry-after", "").strip()
    if value.isdecimal():
        seconds = float(value)
    else:
        try:
            then = email.utils.parsedate_to_datetime(value)
            now = email.utils.parsedate_to_datetime(answer["date"]) if "date" in answer else datetime.now(UTC)
            seconds = (then - now).total_seconds()
        except (ValueError, TypeError):  # TypeError: one of the two instants has no zone
            return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


_HOST = re.compile(r"[\w.:-]+")
"""A pattern for names and addresses of hosts. httpx escapes what a URL cannot hold, and accepts the result."""


def onward(url: httpx.URL, answer: httpx.Headers) -> httpx.URL:
    """Return the URL to which an answer redirects. Raises DefinitionError if that is not a URL. Raises AddressRefused
    if its scheme is neither http nor https, or if it leads from https to http."""
    try:
        location = url.join(answer["location"])
    except (KeyError, httpx.InvalidURL):
        raise DefinitionError(
            f"{shown(url)} redirects to an address that is not a URL", hint="Correct the URL of the action."
        ) from None
    if _HOST.fullmatch(location.host) is None:
        raise DefinitionError(
            f"{shown(url)} redirects to an address that is not a URL", hint="Correct the URL of the action."
        )
    if location.scheme not in ("http", "https"):
        raise AddressRefused(
            f"{shown(url)} redirects to {shown(location)}, whose scheme is neither http nor https",
            hint="Correct the URL of the action.",
        )
    if url.scheme == "https" and location.scheme == "http":
        raise AddressRefused(
            f"the redirect of {shown(url)} to {shown(location)} leads from https to http",
            hint="Correct the URL of the action.",
        )
    return location
