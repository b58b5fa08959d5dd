"""The request of an HTTP action that is a client: its templates are rendered, and its body is encoded."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import orjson

from penstock.errors import ConfigurationError, DefinitionError, InvalidInput
from penstock.language.definitions.http_request import CHUNK, HttpFile, HttpRequest
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
    """Return the names that the templates of a request read."""
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
    """Return the request of an attempt. `folder` has the files that bodies may name. Raises ExpressionError,
    InvalidInput, DefinitionError, ConfigurationError."""
    content, content_type = _body(request, namespace, folder)
    headers = {
        name: _header(name, value)
        for name, value in render(request.headers, namespace).items()
        if value is not None
    }
    if request.method not in SAFE_METHODS and not any(name.lower() == "idempotency-key" for name in headers):
        headers["Idempotency-Key"] = str(run.event.execution_id)
    return Request(request.method, _url(options.url, request, namespace), headers, content, content_type)


def with_query(url: httpx.URL, query: Mapping[str, Any]) -> httpx.URL:
    """Return a URL with these query parameters in place of those of the same names."""
    pairs = list(_pairs(query))
    remaining = [(name, value) for name, value in url.params.multi_items() if name not in query]
    return (
        url.copy_with(query=urlencode([*remaining, *pairs]).encode())
        if remaining or pairs
        else url.copy_with(query=None)
    )


def _url(template: str, request: HttpRequest, namespace: Mapping[str, Any]) -> httpx.URL:
    def escaped(match: Any) -> str:
        value = _text(render(match.group(0), namespace))
        # An empty part, or a dot, would name another resource: DELETE /orders/ instead of /orders/7.
        if value in ("", ".", ".."):
            raise InvalidInput(
                f"{match.group(0)} in the URL is {value!r}", hint="Give a parameter that names one resource."
            )
        return quote(value, safe="")

    try:
        url = httpx.URL(CHUNK.sub(escaped, template))
    except httpx.InvalidURL as error:
        raise InvalidInput(f"the URL is not valid: {error}", hint="Correct the parameters in it.") from None
    query = render(request.query, namespace)
    return with_query(url, query) if query else url


def _body(
    request: HttpRequest, namespace: Mapping[str, Any], folder: Path | None
) -> tuple[bytes, str | None]:
    if request.body is not None:
        body = render(request.body, namespace)
        if body is None:
            return b"", None
        try:
            return orjson.dumps(body), "application/json"
        except TypeError as error:
            raise InvalidInput(
                f"the body is not JSON: {error}",
                hint="Send JSON: texts, numbers, true, false, null, lists and objects.",
            ) from None
    if request.text is not None:
        text = _text(render(request.text, namespace))
        return text.encode(), request.content_type or "text/plain; charset=utf-8"
    if request.form is None and request.files is None:
        return b"", None
    fields = list(_pairs(render(request.form or {}, namespace)))
    if request.files is None:
        return urlencode(fields).encode(), "application/x-www-form-urlencoded"
    parts: list[tuple[str, Any]] = [(name, (None, value)) for name, value in fields]
    for name, file in request.files.items():
        if (part := _file(name, file, namespace, folder)) is not None:
            parts.append((name, part))
    if not parts:
        return b"", None
    encoded = httpx.Request("POST", "http://localhost", files=parts)
    return encoded.read(), encoded.headers["content-type"]


def _file(
    name: str, file: HttpFile, namespace: Mapping[str, Any], folder: Path | None
) -> tuple[str, bytes, str] | None:
    """Return the part of a file: its name, content and type. None for a content that is null."""
    filename = _text(render(file.filename, namespace)) if file.filename is not None else None
    if file.path is None:
        value = render(file.content, namespace)
        if value is None:
            return None
        content = value.encode() if isinstance(value, str) else orjson.dumps(value)
        return filename or name, content, file.type
    if folder is None:
        raise ConfigurationError(
            "this worker sends no files",
            hint='Name the folder of the files: PENSTOCK_EXECUTORS=\'{"http": {"files": "/srv/files"}}\'.',
        )
    path = (folder / file.path).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise DefinitionError(f"{file.path} is outside of the folder of files", hint="Name a file below it.")
    try:
        return filename or os.path.basename(file.path), path.read_bytes(), file.type
    except OSError as error:
        raise ConfigurationError(
            f"the file {file.path} cannot be read: {error}", hint="Put the file there, or correct its path."
        ) from None


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and texts. A list gives its name several times, and null gives nothing. A mapping gives `name[key]`,
    and a list inside of it `name[key][0]`. A list with mappings or lists in it gives `name[0]`, as the fields of two items
    would be one list otherwise."""
    for name, value in values.items():
        items = value if isinstance(value, list | tuple) else (value,)
        if items is value and any(isinstance(item, Mapping | list | tuple) for item in items):
            yield from _nested(name.removesuffix("[]"), items)
            continue
        for item in items:
            yield from _nested(name, item)


def _nested(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _nested(f"{name}[{key}]", item)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _nested(f"{name}[{number}]", item)
    elif value is not None:
        yield name, _text(value)


def _header(name: str, value: Any) -> str:
    text = _text(value)
    if any(letter in text for letter in "\r\n\0") or not text.isprintable():
        raise InvalidInput(f"the header {name} has a control character", hint="Remove it from the value.")
    return text


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    return orjson.dumps(value).decode()
