"""One call of a subscriber: signed, only to a public address, without redirects; and its outcome."""

from __future__ import annotations

import asyncio
import random

import httpcore
import httpx

from penstock.errors import AddressRefused
from penstock.language.terms.standard_webhooks import signature
from penstock.run.cut_texts import cut_end
from penstock.service.http_addresses import Addresses, GuardedNetwork, trusted
from penstock.settings import Settings
from penstock.store.access.subscriptions import Called, Delivery

TIMEOUT = 10.0
"""Seconds that a subscriber has to connect, and then to answer."""
KEPT = 2.0
"""Seconds for which a connection is kept for the next call. A later call checks the address again."""
GONE = 410
DELAYS = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, *((14400.0,) * 17))
"""Seconds until the next try of a call, by the number of tries: three days in all."""
SHOWN = 300


def addresses(settings: Settings) -> Addresses:
    """Return the addresses that may be called. Raises ConfigurationError if PENSTOCK_PRIVATE_SUBSCRIBERS has a word
    that is not valid."""
    words = settings.private_subscribers.replace(",", " ").split()
    return Addresses(words, named="PENSTOCK_PRIVATE_SUBSCRIBERS")


def connections(settings: Settings, limit: int) -> httpcore.AsyncConnectionPool:
    """Return a pool that connects to public addresses, and to those that the operator allows. The pool ignores proxies
    of the environment."""
    return httpcore.AsyncConnectionPool(
        ssl_context=trusted(),
        max_connections=limit,
        keepalive_expiry=KEPT,
        network_backend=GuardedNetwork(addresses(settings)),
    )


async def call(pool: httpcore.AsyncConnectionPool, delivery: Delivery, secret: str) -> Called:
    """Make one call, signed with a secret, and return its outcome. Errors of the subscriber are outcomes, not
    exceptions."""
    body, at = delivery.body.encode(), str(int(delivery.now.timestamp()))
    id = f"msg_{delivery.id.hex}"
    headers = {
        "content-type": "application/json",
        "user-agent": "penstock",
        "webhook-id": id,
        "webhook-timestamp": at,
        "webhook-signature": f"v1,{signature(secret, id, at, body)}",
    }
    limits = dict.fromkeys(("connect", "read", "write", "pool"), TIMEOUT)
    url = httpx.URL(delivery.url)
    try:
        async with (
            asyncio.timeout(2 * TIMEOUT),
            pool.stream(
                "POST",
                httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                headers=list(headers.items()),
                content=body,
                extensions={"timeout": limits},
            ) as answer,
        ):
            status = answer.status
    except AddressRefused as refused:
        return failed(delivery, f"{refused.message}. {refused.hint}")
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, OSError) as error:
        return failed(delivery, f"{type(error).__name__}: {error}".rstrip(": "))
    if 200 <= status < 300:
        return Called(delivery)
    if status == GONE:
        return Called(delivery, f"it answered {status}", None, gone=True)
    return failed(delivery, f"it answered {status}")


def failed(delivery: Delivery, error: str) -> Called:
    """Return the outcome of a failed call, which is retried later or dropped."""
    delay = None
    if delivery.tries <= len(DELAYS):
        delay = DELAYS[delivery.tries - 1] * random.uniform(0.8, 1.2)
    return Called(delivery, cut_end(error, SHOWN), delay)
