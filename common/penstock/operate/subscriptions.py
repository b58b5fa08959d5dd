"""Subscriptions: programs that are called when executions move to certain statuses."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.moves import FINAL, STATUSES
from penstock.language.terms.options import Wrong, did_you_mean
from penstock.language.terms.outside_names import check_tenant
from penstock.language.terms.run_labels import check_labels
from penstock.language.terms.standard_webhooks import PREFIX, new_secret
from penstock.operate import signing_secrets
from penstock.run.cut_texts import cut_end
from penstock.store.access import subscriptions as store
from penstock.store.access.subscriptions import NewSubscription, Subscription
from penstock.store.session.database import Session

SHORTEST = 16
"""The minimum bytes of a secret."""
LONGEST_URL = 2000

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_ACTION = re.compile(r"[A-Za-z0-9_.*-]{1,300}")


async def put(
    session: Session,
    name: str,
    *,
    url: str,
    statuses: Sequence[str] = (),
    tenant: str | None = None,
    action: str | None = None,
    workflow: str | None = None,
    tasks: bool = False,
    labels: Mapping[str, str] | None = None,
    secret: str | None = None,
    by: str,
    only_new: bool = False,
) -> tuple[Subscription, str | None]:
    """Create a subscription, or change and enable it; with `only_new` create it only. Return it, and the secret that
    signs its calls if this call created that: it cannot be read back. No `statuses` means the final ones. `action` is a
    pattern such as `shop.*`. `workflow`: its runs, and with `tasks` those of its tasks. `labels`: only executions that
    have all of them. Raises InvalidInput if an option is not valid, Conflict if `only_new` and the name is taken, and
    ConfigurationError without a master key."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a valid subscription name", hint="Use a-z, 0-9, _ and -.")
    if tenant is not None:
        check_tenant(tenant)
    for ref in (action, workflow):
        if ref is not None and not _ACTION.fullmatch(ref):
            raise InvalidInput(
                f"{ref!r} is not a valid action name", hint="Write for example shop.charge, or shop.*"
            )
    try:
        wanted_labels = check_labels(labels or {})
    except Wrong as wrong:
        raise InvalidInput(f"labels {wrong}", hint=wrong.hint) from None
    _check_url(url)
    _check_secret(secret)
    subscription = NewSubscription(
        name, url, _statuses(statuses), tenant, action, workflow, tasks, wanted_labels
    )
    fresh = new_secret()
    sealed = await signing_secrets.sealed(session.settings, "subscription", name, secret or fresh)
    async with session.transaction() as tx:
        stored = await store.put(tx, subscription, by, only_new)
        if stored is None:
            raise Conflict(
                f"there already is a subscription {name!r}",
                hint="Change the existing subscription, or choose another name.",
            )
        saved, is_new = stored
        if is_new or secret is not None:
            await signing_secrets.put(tx, sealed, by)
    return saved, fresh if is_new and secret is None else None


def _statuses(statuses: Sequence[str]) -> list[str]:
    for status in statuses:
        if status not in STATUSES:
            raise InvalidInput(f"unknown status {status!r}", hint=did_you_mean(status, STATUSES))
    return [status for status in STATUSES if status in (statuses or FINAL)]


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        port = parts.port or 443
    except ValueError:
        raise InvalidInput(
            f"{cut_end(url, 100)!r} is not an address", hint="Write for example https://example.org/hook."
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not 0 < port < 65536:
        raise InvalidInput(
            f"{cut_end(url, 100)!r} is not a web address", hint="Write for example https://example.org/hook."
        )
    if len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(
            "the address is too long, or not plain ASCII",
            hint="Shorten it, and percent-encode what is not ASCII.",
        )
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            "the address contains a password, which every caller with the scope `read` could see",
            hint="Remove the password. Calls are signed, so let the receiver check the signature.",
        )


def _check_secret(secret: str | None) -> None:
    if secret is None:
        return
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) < SHORTEST:
        raise InvalidInput(
            f"the secret is not {PREFIX} and then at least {SHORTEST} bytes as base64",
            hint="Omit the secret, so that one is generated.",
        )


async def remove(session: Session, name: str) -> None:
    """Remove a subscription, with its calls that were not made yet. Raises NotFound if the subscription does not
    exist."""
    async with session.transaction() as tx:
        deleted = await store.delete(tx, name)
    if not deleted:
        raise await _unknown(session, name)


async def enable(session: Session, name: str) -> Subscription:
    """Enable a subscription again. Moves in the meantime are not delivered. Raises NotFound if the subscription does
    not exist."""
    async with session.transaction() as tx:
        subscription = await store.enable(tx, name)
    if subscription is None:
        raise await _unknown(session, name)
    return subscription


async def _unknown(session: Session, name: str) -> NotFound:
    names = [subscription.name for subscription in await store.listed(session)]
    return NotFound(f"no subscription {name!r}", hint=did_you_mean(name, names))
