"""The request of an HTTP action that is a client: its templates are rendered, and its body is encoded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import httpx
import orjson

from penstock.attempts.http.http_encoding import (
    escaped,
    escaped_pairs,
    joined,
    json_items,
    pairs,
    plain,
    styled,
    text_of,
)
from penstock.errors import ConfigurationError, DefinitionError, InvalidInput
from penstock.language.definitions.http_request import CHUNK, HttpEncoding, HttpFile, HttpRequest, is_json
from penstock.language.definitions.program_actions import HttpOptions
from penstock.language.expressions import render
from penstock.run.task_executors import Run

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
"""The methods that change nothing, and need no idempotency key."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, ready to be sent. `headers` has those of the action, which are sent to its own host only."""

    method: str
    url: httpx.URL
    headers: Mapping[str, str]
    content: bytes
    content_type: str | None


def namespace_of(run: Run, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables of the templates of a request, by name."""
    event = run.event
    return {
        "parameters": params,
        "secrets": run.secrets,
        "context": run.context,
        "execution": {
            "id": str(event.execution_id),
            "attempt": event.attempt,
            "tenant": event.namespace.partition("::")[0],
            "action": event.action,
            "root": str(event.root),
            "workflow": str(event.workflow) if event.workflow else None,
            "task": event.task,
        },
    }


def built(
    run: Run, options: HttpOptions, request: HttpRequest, namespace: dict[str, Any], folder: Path | None
) -> Request:
    """Return the request of an attempt. `folder` has the files that bodies may name. Raises ExpressionError if a
    template fails, and InvalidInput if a value does not fit its place in the request. Raises DefinitionError or
    ConfigurationError for a file that cannot be sent."""
    content, content_type = _body(request, namespace, folder)
    values = {
        name: _simple(name, value, request) for name, value in render(request.headers, namespace).items()
    }
    headers = {name: _header(name, value) for name, value in values.items() if value is not None}
    if cookies := _cookies(request, namespace):
        headers["Cookie"] = _header("Cookie", cookies)
    if request.method not in SAFE_METHODS and not any(name.lower() == "idempotency-key" for name in headers):
        headers["Idempotency-Key"] = str(run.event.execution_id)
    return Request(request.method, _url(options.url, request, namespace), headers, content, content_type)


def with_query(
    url: httpx.URL, query: Mapping[str, Any], encodings: Mapping[str, HttpEncoding] | None = None
) -> httpx.URL:
    """Return a URL with these query parameters in place of those of the same names. The others stay as they are written."""
    parts = list(escaped_pairs(query, encodings or {}))
    names = {*query, *map(_name_of, parts)}
    remaining = [part for part in url.query.decode().split("&") if part and _name_of(part) not in names]
    return url.copy_with(query="&".join([*remaining, *parts]).encode() if remaining or parts else None)


def _name_of(part: str) -> str:
    return unquote_plus(part.partition("=")[0])


def _url(template: str, request: HttpRequest, namespace: Mapping[str, Any]) -> httpx.URL:
    def escaped_chunk(match: Any) -> str:
        value = render(match.group(0), namespace)
        text = joined(value) if isinstance(value, list | tuple) else escaped(text_of(value))
        # An empty part, or a dot, would name another resource: DELETE /orders/ instead of /orders/7.
        if text in ("", ".", ".."):
            raise InvalidInput(
                f"{match.group(0)} in the URL is {text!r}", hint="Give a parameter that names one resource."
            )
        return text

    try:
        url = httpx.URL(CHUNK.sub(escaped_chunk, template))
    except httpx.InvalidURL as error:
        raise InvalidInput(f"the URL is not valid: {error}", hint="Correct the parameters in it.") from None
    query = render(request.query, namespace)
    return with_query(url, query, request.encoding) if query else url


def _simple(name: str, value: Any, request: HttpRequest) -> Any:
    """Return the value of a header, in its style if it has one."""
    encoding = request.encoding.get(name)
    if encoding is None or encoding.style != "simple":
        return value
    return next((text for _, text in styled(name, value, encoding, plain)), None)


def _cookies(request: HttpRequest, namespace: Mapping[str, Any]) -> str:
    """Return the header `Cookie`. A value without an encoding is sent as it is. Raises InvalidInput for one that would end
    its cookie."""
    cookies = []
    for name, value in render(request.cookies, namespace).items():
        if value is None:
            continue
        encoding = request.encoding.get(name)
        texts = (
            [text_of(value)] if encoding is None else [t for _, t in styled(name, value, encoding, escaped)]
        )
        for text in texts:
            if ";" in text:
                raise InvalidInput(f"the cookie {name} has a semicolon", hint="Remove it from the value.")
            cookies.append(f"{name}={text}")
    return "; ".join(cookies)


def _body(
    request: HttpRequest, namespace: Mapping[str, Any], folder: Path | None
) -> tuple[bytes, str | None]:
    if request.body is not None:
        body = render(request.body, namespace)
        if body is None:
            return b"", None
        try:
            return orjson.dumps(body), request.content_type or "application/json"
        except TypeError as error:
            raise InvalidInput(
                f"the body is not JSON: {error}",
                hint="Send JSON: texts, numbers, true, false, null, lists and objects.",
            ) from None
    if request.text is not None:
        text = render(request.text, namespace)
        if text is None:
            return b"", None
        return text_of(text).encode(), request.content_type or "text/plain; charset=utf-8"
    if request.form is None and request.files is None:
        return b"", None
    form = render(request.form or {}, namespace)
    if request.files is None:
        content = "&".join(escaped_pairs(form, request.encoding))
        return content.encode(), "application/x-www-form-urlencoded"
    parts = [part for name, value in form.items() for part in _fields(name, value, request)]
    for name, file in request.files.items():
        parts += [(name, part) for part in _files(name, file, namespace, folder)]
    if not parts:
        return b"", None
    encoded = httpx.Request("POST", "http://localhost", files=parts)
    return encoded.read(), encoded.headers["content-type"]


def _fields(name: str, value: Any, request: HttpRequest) -> Sequence[tuple[str, Any]]:
    """Return the parts of a field of a multipart body. These parts have no file name."""
    encoding = request.encoding.get(name)
    if encoding is None:
        return [(key, (None, text)) for key, text in pairs({name: value})]
    if encoding.style is not None:
        return [(key, (None, text)) for key, text in styled(name, value, encoding, plain)]
    items = value if isinstance(value, list | tuple) else (value,)
    texts = json_items(value) if encoding.is_json else (text_of(item) for item in items if item is not None)
    return [(name, (None, text, encoding.content_type)) for text in texts]


def _files(
    name: str, file: HttpFile, namespace: Mapping[str, Any], folder: Path | None
) -> Sequence[tuple[str, bytes, str]]:
    """Return the parts of a file: name, content and type of each. A content that is null has none, and a list has one for
    each item, unless it is sent as JSON."""
    filename = text_of(render(file.filename, namespace)) if file.filename is not None else None
    if file.path is None:
        value = render(file.content, namespace)
        is_list = isinstance(value, list | tuple) and not is_json(file.type)
        items = [item for item in (value if is_list else (value,)) if item is not None]
        contents = [item.encode() if isinstance(item, str) else orjson.dumps(item) for item in items]
        return [(filename or name, content, file.type) for content in contents]
    if folder is None:
        raise ConfigurationError(
            "this worker sends no files",
            hint='Name the folder of the files: PENSTOCK_EXECUTORS=\'{"http": {"files": "/srv/files"}}\'.',
        )
    path = (folder / file.path).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise DefinitionError(f"{file.path} is outside of the folder of files", hint="Name a file below it.")
    try:
        return [(filename or os.path.basename(file.path), path.read_bytes(), file.type)]
    except OSError as error:
        raise ConfigurationError(
            f"the file {file.path} cannot be read: {error}", hint="Put the file there, or correct its path."
        ) from None


def _header(name: str, value: Any) -> str:
    text = text_of(value)
    if any(letter in text for letter in "\r\n\0") or not text.isprintable():
        raise InvalidInput(f"the header {name} has a control character", hint="Remove it from the value.")
    return text
