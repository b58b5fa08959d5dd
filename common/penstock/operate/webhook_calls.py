"""The meaning of a webhook call: its signature is checked, and it gives a payload, a key, and perhaps the outcome of what
waits for an id. It is pure: the secret and the current instant are parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import orjson

from penstock.errors import InvalidInput
from penstock.language.expressions import compile_template, condition
from penstock.operate import webhook_signatures
from penstock.operate.outside import Report
from penstock.run.cut_texts import cut_end
from penstock.run.json_integers import parsed
from penstock.service.charsets import charset_of, known_charset
from penstock.store.access.webhooks import Webhook

FORM_FIELDS = 1000
PAYLOAD_CHARACTERS = 1000
"""The maximum length of a payload in the message of a failure, in characters."""
FORM = "application/x-www-form-urlencoded"
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
GITHUB_FIELD = "payload"
"""The one field of a form that GitHub sends if it is configured to send forms. It contains the JSON."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it arrives: its body, its headers by lower-case name, and the fields of its query."""

    raw: bytes
    headers: Mapping[str, str]
    query: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a call: the payload of its event, and its key if it has one. `awaited` is the id of what it ends, as
    failed if `fails`, or None."""

    webhook: str
    payload: Any
    key: str | None
    awaited: str | None
    fails: bool

    def outcome(self, event: UUID) -> Report:
        """Return the outcome of what waits for `awaited`. `event` is the event that the call became."""
        if not self.fails:
            return Report("result", self.payload)
        text = self.payload if isinstance(self.payload, str) else orjson.dumps(self.payload).decode()
        excerpt = cut_end(text, PAYLOAD_CHARACTERS)
        return Report("error", f"the webhook {self.webhook} reports a failure in event {event}: {excerpt}")


def read(webhook: Webhook, secret: str, call: Call, now: float) -> Meaning:
    """Return the meaning of a call. `now` is in seconds since 1970. Raises NotAuthenticated for a wrong signature,
    InvalidInput, and ExpressionError for templates that this call does not suit."""
    webhook_signatures.check(webhook, secret, call.headers, call.raw, now)
    body = _read(call.raw, call.headers.get("content-type", ""))
    if webhook.signature == "github" and isinstance(body, dict) and list(body) == [GITHUB_FIELD]:
        body = _json(str(body[GITHUB_FIELD]).encode())
    payload = body
    names = {"body": body, "headers": call.headers, "query": _fields(call.query)}
    if webhook.payload is not None:
        payload = compile_template(orjson.loads(webhook.payload))(names)
    key = webhook_signatures.key_of(webhook, call.headers, call.raw, body)
    report = _report(webhook, names)
    if report is None:
        if payload is None:
            raise InvalidInput(
                "the payload of the event would be null",
                hint="Send another JSON value, or give the webhook a template of the payload.",
            )
        return Meaning(webhook.name, payload, key, None, False)
    if key is None:
        raise InvalidInput(
            "the call lacks the key header, so a repeated call could complete another wait for the same id",
            hint="Send a header that has the same value in a repeated call. Its name is set with --key-header.",
        )
    awaited, fails = report
    return Meaning(webhook.name, payload, key, awaited, fails)


def _report(webhook: Webhook, names: dict[str, Any]) -> tuple[str, bool] | None:
    """Return the id that a call completes, and whether it reports a failure; None for a call without an id."""
    awaited = None if webhook.completes is None else compile_template(webhook.completes)(names)
    if awaited is None or awaited == "":
        return None
    fails = webhook.fails is not None and condition(webhook.fails)(names)
    return str(awaited), fails


def _read(raw: bytes, kind: str) -> Any:
    """Return the parsed body: JSON, or the fields of a form."""
    media, _, options = kind.partition(";")
    if media.strip().lower() == FORM:
        return _form(raw, charset_of(options) or "utf-8")
    return _json(raw)


def _form(raw: bytes, charset: str) -> dict[str, Any]:
    """Return the fields of a form. Raises InvalidInput for bytes that are not of its charset."""
    codec = known_charset(charset)
    escaped = _NOT_ASCII.sub(lambda match: b"%%%02X" % match[0][0], raw).decode("ascii")
    try:
        if codec is None:
            raise UnicodeError
        return _fields(
            parse_qsl(
                escaped, keep_blank_values=True, max_num_fields=FORM_FIELDS, encoding=codec, errors="strict"
            )
        )
    except UnicodeError:
        raise InvalidInput(
            f"the form is not encoded in {cut_end(charset, 60)}, which is the charset of its type, or the default",
            hint="Send the form in UTF-8, or name its charset: application/x-www-form-urlencoded; charset=iso-8859-1.",
        ) from None
    except ValueError:
        raise InvalidInput(f"a form has at most {FORM_FIELDS:,} fields", hint="Send JSON.") from None


def _fields(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields of a form or a query. The value of a repeated field is the list of its values."""
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in values.items()}


def _json(raw: bytes) -> Any:
    try:
        return parsed(raw)
    except orjson.JSONDecodeError as error:
        raise InvalidInput(f"the body is not JSON: {error}", hint="Send JSON, or a form.") from None
