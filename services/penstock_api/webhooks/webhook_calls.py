"""The route `POST /hooks/<name>` for calls of other programs, which become events. The answer comes once the event is
durably stored."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Annotated, Any
from urllib.parse import parse_qsl
from uuid import UUID

import orjson
from fastapi import APIRouter, Path, Request

from penstock.errors import InvalidInput
from penstock.language.expressions import compile_template, condition
from penstock.language.terms.event_sources import of_webhook
from penstock.operate import outside, signing_secrets, webhooks
from penstock.operate.outside import Report
from penstock.run.cut_texts import cut_end
from penstock.run.json_integers import parsed
from penstock.service.charsets import charset_of, known_charset
from penstock.store.access.webhooks import Webhook
from penstock.store.session.database import Transaction
from penstock_api.backend import Here
from penstock_api.models.events import Published
from penstock_api.requests.problems import ANSWERS
from penstock_api.routes.router import operation_id
from penstock_api.webhooks import webhook_signatures
from penstock_api.webhooks.unreadable_secrets import concealed_from_caller

router = APIRouter(tags=["webhooks"], responses=ANSWERS, generate_unique_id_function=operation_id)

FORM_FIELDS = 1000
PAYLOAD_CHARACTERS = 1000
"""The maximum length of a payload in the message of a failure, in characters."""
FORM = "application/x-www-form-urlencoded"
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
GITHUB_FIELD = "payload"
"""The one field of a form that GitHub sends if it is configured to send forms. It contains the JSON."""


@router.post("/hooks/{name}", status_code=202)
async def call(
    name: Annotated[str, Path(description="The name of the webhook.")], request: Request, backend: Here
) -> Published:
    """Publish the call's body as an event of the webhook's trigger. The signature identifies the caller. The same call
    again returns the same event."""
    async with backend.pool.session() as session:
        webhook = await webhooks.find(session, name)
        with concealed_from_caller():
            secret = await signing_secrets.of_webhook(session, name)
    raw = await request.body()
    headers = {key.lower(): value for key, value in request.headers.items()}
    webhook_signatures.check(webhook, secret, headers, raw, time.time())
    body = _read(raw, headers.get("content-type", ""))
    if webhook.signature == "github" and isinstance(body, dict) and list(body) == [GITHUB_FIELD]:
        body = _json(str(body[GITHUB_FIELD]).encode())
    payload = body
    names = {"body": body, "headers": headers, "query": _fields(request.query_params.multi_items())}
    if webhook.payload is not None:
        payload = compile_template(orjson.loads(webhook.payload))(names)
    key = webhook_signatures.key_of(webhook, headers, raw, body)
    source = of_webhook(name)
    publishing = backend.client.publishing
    report = _report(webhook, names)
    if report is None:
        if payload is None:
            raise InvalidInput(
                "the payload of the event would be null",
                hint="Send another JSON value, or give the webhook a template of the payload.",
            )
        id = await publishing.publish(webhook.trigger, payload, key=key, tenant=webhook.tenant, source=source)
        return Published(id=id)
    if key is None:
        raise InvalidInput(
            "the call has no key, so a repeated call could complete another wait for the same id",
            hint="Send a header that is equal for a repeated call, and name it with --key-header.",
        )
    awaited, fails = report

    async def settle(tx: Transaction, event: UUID) -> None:
        outcome = Report("error", _failure(name, event, payload)) if fails else Report("result", payload)
        cap, by = tx.settings.payload_cap, f"webhook {webhook.name}"
        with concealed_from_caller():
            await outside.report_by_id(tx, cap, webhook.tenant, awaited, outcome, by)

    id = await publishing.publish_with(
        webhook.trigger, payload, settle, key=key, tenant=webhook.tenant, source=source
    )
    return Published(id=id)


def _report(webhook: Webhook, names: dict[str, Any]) -> tuple[str, bool] | None:
    """Return the id that a call completes, and whether it reports a failure; None for a call without an id."""
    awaited = None if webhook.completes is None else compile_template(webhook.completes)(names)
    if awaited is None or awaited == "":
        return None
    fails = webhook.fails is not None and condition(webhook.fails)(names)
    return str(awaited), fails


def _failure(name: str, event: UUID, payload: Any) -> str:
    """Return the message of a failure that a call reports: the event that the call became, and the begin of its payload."""
    text = payload if isinstance(payload, str) else orjson.dumps(payload).decode()
    return f"the webhook {name} reports a failure in event {event}: {cut_end(text, PAYLOAD_CHARACTERS)}"


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
            f"the form is not {cut_end(charset, 60)}, as its type says or by default",
            hint="Send it in UTF-8, or name its charset: application/x-www-form-urlencoded; charset=iso-8859-1.",
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
