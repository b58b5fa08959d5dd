"""Webhooks: addresses that other programs call; each call becomes an event. Every replica of the API reads them from
the database."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

import orjson

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.expressions import NamesUsed, compile_template, condition, names_used
from penstock.language.rules.parameter_checks import misfits, unknown_names
from penstock.language.terms.options import Problem, did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.language.terms.system_triggers import HINT_PUBLISH, is_system
from penstock.operate import signing_secrets
from penstock.store.access import webhooks
from penstock.store.access.webhooks import Webhook
from penstock.store.definitions import catalog
from penstock.store.session.database import Session

SIGNATURES = ("secret", "github", "stripe", "standard")
"""The schemes that verify a call: the secret itself in a header, or a signature as of GitHub, Stripe or Standard
Webhooks (standardwebhooks.com)."""
SHORTEST = 16
"""The minimum characters of a secret."""

CALL = ("body", "headers", "query")
"""The names of a call, for the templates."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
"""The names that a webhook may have."""
_HEADER = re.compile(r"[A-Za-z0-9-]{1,100}")


async def put(
    session: Session,
    name: str,
    *,
    trigger: str,
    signature: str,
    secret: str | None,
    tenant: str = "public",
    header: str | None = None,
    key_header: str | None = None,
    payload: Any = None,
    completes: str | None = None,
    fails: str | None = None,
    by: str,
    only_new: bool = False,
) -> Webhook:
    """Create a webhook, or change it; with `only_new` create it only. Without a `secret` it keeps its own.
    Nothing returns a secret.

    `header`: the header with a plain secret. `key_header`: the header that identifies repeated calls, if the signature
    scheme has none. `payload`: a template over `body`, `headers` and `query`; by default the body. `completes`: a
    template over the same names that gives the id of what executions wait for (`later`), or nothing; the payload is
    their result. They fail instead if the condition `fails` holds. A call has this effect once, so each has a key.
    Raises InvalidInput or ExpressionError if an option is not valid, and NotFound for an unknown trigger. Raises
    Conflict if `only_new` and the name is taken, and ConfigurationError without a master key.
    """
    check_call(
        name, trigger, signature=signature, secret=secret, tenant=tenant, header=header, key_header=key_header
    )
    if secret is None and await webhooks.find(session, name) is None:
        raise InvalidInput(
            "a new webhook needs a secret", hint="Without a secret, any program could call it."
        )
    triggers = await catalog.current(session, ["trigger"], [trigger])
    if not triggers:
        otherwise = "List the triggers with: penstock triggers"
        hint = await catalog.hint(session, ["trigger"], trigger, otherwise)
        raise NotFound(f"there is no trigger {trigger!r}", hint=hint)
    schema = orjson.loads(triggers[0].body).get("schema")
    has_key = signature != "secret" or key_header is not None
    check_templates(trigger, schema, payload=payload, completes=completes, fails=fails, has_key=has_key)
    template = None if payload is None else orjson.dumps(payload).decode()
    sealed = secret and await signing_secrets.sealed(session.settings, "webhook", name, secret)
    async with session.transaction() as tx:
        webhook = await webhooks.put(
            tx, name, trigger, tenant, signature, header, key_header, template, completes, fails, by, only_new
        )
        if webhook is None:
            raise Conflict(
                f"there already is a webhook {name!r}",
                hint="Change the existing webhook, or choose another name.",
            )
        if sealed:
            await signing_secrets.put(tx, sealed, by)
    return webhook


def check_call(
    name: str,
    trigger: str,
    *,
    signature: str,
    secret: str | None,
    tenant: str,
    header: str | None,
    key_header: str | None,
) -> None:
    """Check what identifies a webhook and verifies its calls. Raises InvalidInput."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not a valid name of a webhook",
            hint="Use a-z, 0-9, _ and -: the name is part of an address.",
        )
    check_tenant(tenant)
    if signature not in SIGNATURES:
        raise InvalidInput(
            f"there is no signature scheme {signature!r}", hint=did_you_mean(signature, SIGNATURES)
        )
    for header_name in (header, key_header):
        if header_name is not None and not _HEADER.fullmatch(header_name):
            raise InvalidInput(
                f"{header_name!r} is not a valid header name", hint="Write for example X-Webhook-Secret."
            )
    _check_secret(secret, signature)
    if is_system(trigger):
        raise InvalidInput(f"{trigger} is not published", hint=HINT_PUBLISH)


def check_templates(
    trigger: str, schema: Any, *, payload: Any, completes: str | None, fails: str | None, has_key: bool
) -> None:
    """Check the templates of a webhook against the names of a call, and the payload against the schema of its trigger.
    `has_key`: each call has a key. Raises InvalidInput, ExpressionError."""
    if payload is not None:
        compile_template(payload)
        _check_names("payload", names_used(payload))
        if isinstance(payload, dict):
            _refuse("payload", misfits(payload, trigger, schema, noun="field"))
    if completes is not None:
        compile_template(completes)
        _check_names("completes", names_used(completes))
        if not has_key:
            raise InvalidInput(
                "`completes` needs a key header: without it, a repeated call could complete another wait for the same id",
                hint="Name the header that has the same value in a repeated call: --key-header.",
            )
    if fails is not None:
        if completes is None:
            raise InvalidInput(
                "`fails` needs `completes`",
                hint="Set the template for the id that a call completes: --completes.",
            )
        _check_names("fails", condition(fails).names)


def _check_names(option: str, used: NamesUsed) -> None:
    """Raise InvalidInput for templates that read a name which no call has."""
    _refuse(option, unknown_names(used, dict.fromkeys(CALL)))


def _refuse(option: str, problems: Iterator[Problem]) -> None:
    refused = list(problems)
    if refused:
        messages = "; ".join(problem.message for problem in refused)
        raise InvalidInput(f"{option}: {messages}", hint=refused[0].hint)


def _check_secret(secret: str | None, signature: str) -> None:
    if secret is None:
        return
    if len(secret) < SHORTEST or not secret.isascii() or not secret.isprintable():
        raise InvalidInput(
            f"the secret is too short, or not plain text: it needs at least {SHORTEST} characters",
            hint="Create a secret with: openssl rand -hex 32",
        )
    if signature == "standard":
        try:
            base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            raise InvalidInput(
                "this secret is not valid: the secret of a standard webhook is whsec_ followed by base64",
                hint="Copy the secret from the sender.",
            ) from None


async def find(session: Session, name: str) -> Webhook:
    """Return a webhook. Raises NotFound if the webhook does not exist."""
    webhook = await webhooks.find(session, name)
    if webhook is None:
        raise NotFound(f"no webhook {name!r}", hint="List the webhooks with: penstock webhooks list")
    return webhook


async def remove(session: Session, name: str) -> None:
    """Remove a webhook. Later calls get 404. Raises NotFound if the webhook does not exist."""
    if not await webhooks.delete(session, name):
        raise NotFound(f"no webhook {name!r}", hint="List the webhooks with: penstock webhooks list")
