"""The encoding of the HTTP client's requests, and the decoding of the answers."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx

from penstock import errors
from penstock.client.checked_arguments import is_text
from penstock.errors import ConnectionFailed, ExecutionFailed, InvalidInput, PenstockError
from penstock.operate.list_filters import FLAGS
from penstock.run.cut_texts import cut_end
from penstock.store.executions.execution_list import ExecutionFilter

KIND = "urn:penstock:error:"
"""The prefix of a problem's type, before the name of the error."""


def error_of(answer: httpx.Response) -> PenstockError:
    """Return the error that the API reported as a problem document."""
    try:
        problem = answer.json()
        detail, hint = str(problem["detail"]), problem.get("hint")
        name = str(problem.get("type", "")).removeprefix(KIND)
    except (ValueError, KeyError, TypeError):
        return ConnectionFailed(
            f"this is not an API of Penstock: its answer {answer.status_code} is not a problem document",
            hint="The address is that of `penstock api`, such as http://127.0.0.1:8000.",
        )
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, PenstockError) and kind is not ExecutionFailed:
        return kind(detail, hint=hint)
    return PenstockError(detail, hint=hint)


def filter_of(filters: ExecutionFilter) -> dict[str, Any]:
    """Return a filter as a query. Raises InvalidInput for a condition that the API has no parameter for, and for an empty one:
    a request without it would select more."""
    fields = asdict(filters)
    for name in ("params", "tenants", "ended"):
        if fields.pop(name) is not None:
            raise InvalidInput(f"the API has no filter {name}", hint="Use another filter.")
    fields["label"] = [f"{key}={value}" for key, value in (fields.pop("labels") or {}).items()] or None
    for name, value in fields.items():
        if value is not None and not value and name not in FLAGS:
            raise InvalidInput(f"the filter {name} is empty", hint=f"Leave out {name}, or give it a value.")
    return {**fields, **{name: fields[name] or None for name in FLAGS}}


def segment(name: str) -> str:
    """Return a name as one segment of a path: a slash or a question mark in it leads to no other route."""
    return quote(name, safe="")


def word_of(value: Any) -> Any:
    """Return a value as the text of a query parameter. Raises InvalidInput for a text that a URL cannot hold."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and not is_text(value):
        raise InvalidInput(
            f"a URL cannot contain {cut_end(ascii(value), 60)}", hint="Give text without NUL characters."
        )
    return str(value).lower() if isinstance(value, bool) else value
