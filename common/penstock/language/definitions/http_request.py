"""The request of an HTTP action that is a client: method, URL, query, headers, body, and the meaning of the response."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from penstock.errors import ExpressionError
from penstock.language.expressions import compile_template
from penstock.language.expressions.template_checks import Templates
from penstock.language.terms.options import Options, Wrong

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
CHUNK = re.compile(r"\{\{.*?\}\}", re.DOTALL)
"""An expression in a URL. Each is rendered alone, and its value is escaped."""
_CLASS = re.compile(r"[1-5]xx")
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


def _template(value: Any) -> Any:
    try:
        compile_template(value)
    except ExpressionError as error:
        raise Wrong(error.message, error.hint) from None
    return value


Template = Annotated[Any, AfterValidator(_template)]


def _status(value: int | str) -> int | str:
    if isinstance(value, int):
        if not 100 <= value <= 599:
            raise Wrong("is not a status", "Write a status such as 404, or a class such as 5xx.")
    elif not _CLASS.fullmatch(value):
        raise Wrong("is not a class of statuses", "Write a status such as 404, or a class such as 5xx.")
    return value


Statuses = list[Annotated[Annotated[int, Field(strict=True)] | str, AfterValidator(_status)]]


def is_json(media_type: str | None) -> bool:
    """Return whether a media type is JSON: `application/json`, or one that ends with `+json` (RFC 6839)."""
    kind = (media_type or "").partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


class HttpFile(Options):
    """A file of a multipart body: its content as a template, or a path below the folder of the worker's http executor. A list
    as content gives several files of one name, unless `type` is JSON."""

    thing: ClassVar[str] = "file"

    content: Template = None
    path: str | None = None
    filename: str | None = None
    type: str = "application/octet-stream"

    @model_validator(mode="after")
    def _has_one_source(self) -> HttpFile:
        if (self.content is None) == (self.path is None):
            raise Wrong("needs either content or path", 'Write content: "{{ parameters.text }}".')
        if self.path is not None and (
            PurePosixPath(self.path).is_absolute() or ".." in PurePosixPath(self.path).parts
        ):
            raise Wrong(
                "has a path outside of the folder", "Write a path below it, such as reports/today.pdf."
            )
        return self


class HttpEncoding(Options):
    """The encoding of a value in the query, the form, the headers or the cookies, in the words of OpenAPI."""

    thing: ClassVar[str] = "encoding"

    style: Literal["form", "spaceDelimited", "pipeDelimited", "simple"] | None = None
    """The style of lists and mappings. Headers have `simple`."""
    explode: Annotated[bool, Field(strict=True)] = False
    """With it, each item of a list or a mapping has its own `name=value`."""
    content_type: str | None = None
    """The media type of this form field. It excludes `style`. A list becomes one form field for each item."""

    @property
    def is_json(self) -> bool:
        return is_json(self.content_type)

    @model_validator(mode="after")
    def _is_style_or_type(self) -> HttpEncoding:
        if (self.style is None) == (self.content_type is None):
            raise Wrong("needs either style or content_type", "Write {style: form}, for example.")
        if self.explode and self.style is None:
            raise Wrong("has explode without a style", "Write {style: form, explode: true}.")
        return self


class HttpPages(Options):
    """The pagination of a response. `items` gives the list of one page. `next` gives the URL of the next page, or its query
    parameters. After the last page it gives null or an empty value."""

    thing: ClassVar[str] = "pagination"

    items: Template
    next: Template
    max_pages: Annotated[int, Field(strict=True, ge=1, le=10_000)] = 100
    """The maximum number of pages. More of them fail the attempt."""


class HttpTls(Options):
    """The files of TLS on the worker: `ca` replaces the trusted authorities, `cert` and `key` identify the client."""

    thing: ClassVar[str] = "TLS"

    ca: str | None = None
    cert: str | None = None
    key: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> HttpTls:
        if self.key is not None and self.cert is None:
            raise Wrong("has a key without a certificate", "Name the certificate too: cert.")
        return self


class HttpRequest(Options):
    """A request. Templates read `parameters`, `secrets` and `execution`; those for a response also read `response`: its
    `status`, `headers`, `links` and `body`."""

    thing: ClassVar[str] = "request"

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] = "GET"
    query: Templates = Field(default_factory=dict)
    headers: Templates = Field(default_factory=dict)
    cookies: Templates = Field(default_factory=dict)
    """The cookies, as one header. A null is left out."""
    encoding: dict[str, HttpEncoding] = Field(default_factory=dict)
    """The encodings of lists and mappings, by their names in query, headers, cookies and form. Without one, a list repeats
    its name, and a mapping has names such as `name[key]`."""
    body: Template = None
    """The JSON body."""
    form: Templates | None = None
    text: Template = None
    files: dict[str, HttpFile] | None = None
    """The files of a multipart body, with the fields of `form`. A file with null as content is left out; `{}` makes a multipart
    body of fields alone."""
    content_type: str | None = None
    """The type of a `body` or a `text`. By default, they are `application/json` and `text/plain; charset=utf-8`."""
    expect: Statuses = Field(default=["2xx"], min_length=1)
    """The statuses with which the attempt completes."""
    retry: Statuses = Field(default=[408, 425, 429, "5xx"])
    """The other statuses that are retried. All others fail for good."""
    answer: Literal["auto", "json", "text", "base64", "none"] = "auto"
    """The form of `response.body`. `auto`: JSON or text by the response's type, and base64 for other types."""
    result: Template = None
    """The result as a template. Without it, the result is the body, or the items of all pages."""
    pages: HttpPages | None = None
    redirects: Annotated[int, Field(strict=True, ge=0, le=20)] = 5
    """The most redirects to follow. Headers of the action are sent to its own host only."""
    tls: HttpTls | None = None

    @field_validator("headers")
    @classmethod
    def _are_not_ours(cls, headers: dict[str, Any]) -> dict[str, Any]:
        for name in headers:
            if name.lower() in _OURS:
                raise Wrong(f"holds {name}, which Penstock sets", "Leave it out.")
        return headers

    @model_validator(mode="after")
    def _has_one_body(self) -> HttpRequest:
        bodies = [
            self.body is not None,
            self.text is not None,
            self.form is not None or self.files is not None,
        ]
        if sum(bodies) > 1:
            raise Wrong("has more than one body", "Give one of body (JSON), form with files, and text.")
        if self.method in ("GET", "HEAD") and any(bodies):
            raise Wrong(f"is a {self.method} with a body", "Use query, or another method.")
        if self.content_type is not None and (self.body is None) and (self.text is None):
            raise Wrong("has content_type without body or text", "A form has its own type: leave it out.")
        return self

    @model_validator(mode="after")
    def _encodes_its_values(self) -> HttpRequest:
        for name, encoding in self.encoding.items():
            places = [
                place
                for place in ("query", "headers", "cookies", "form")
                if name in (getattr(self, place) or {})
            ]
            if not places:
                raise Wrong(
                    f"encodes {name}, which is not in query, headers, cookies or form",
                    "Encode a name that is in one of them.",
                )
            if (encoding.style == "simple") != (places == ["headers"]):
                raise Wrong(
                    f"encodes {name} of {places[0]} as {encoding.style}",
                    "Use simple for headers, and the other styles for the rest.",
                )
            if encoding.content_type is not None and places != ["form"]:
                raise Wrong(f"has a content_type for {name} of {places[0]}", "Use the filter tojson there.")
            if encoding.content_type is not None and self.files is None and not encoding.is_json:
                raise Wrong(
                    f"has the content_type {encoding.content_type} for {name}",
                    "Only parts of a multipart body have other types than JSON: add files: {}.",
                )
        if self.cookies and any(name.lower() == "cookie" for name in self.headers):
            raise Wrong("has cookies and a header Cookie", "Put them all into cookies.")
        return self


def checked_url(url: str, *, templated: bool) -> str:
    """Return a URL that may hold expressions after its host. Raises Wrong for a text that is not an http or https URL,
    holds a password, or has an expression in its host."""
    plain = CHUNK.sub("x", url) if templated else url
    origin = url.partition("://")[2].partition("/")[0]
    if templated and ("{" in origin or "{%" in url or "{#" in url):
        raise Wrong(
            "has an expression in its host, or a statement",
            "Write the scheme and the host out, and {{ expressions }} after them.",
        )
    try:
        parts = urlsplit(plain)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        raise Wrong("is not a URL", "Write https://host/path.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise Wrong("is not an http or https URL", "Write https://host/path.")
    if "@" in parts.netloc:
        raise Wrong(
            "holds a password",
            "Send the password in a header from a secret, or sign the request with `secret_env`.",
        )
    if templated:
        for chunk in CHUNK.findall(url):
            _template(chunk)
    return url
