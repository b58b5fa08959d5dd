"""The action `penstock.notify`, which sends a message to chats, mail, phones and other services through Apprise.

A worker has it with `penstock worker --module penstock.notify`. The module needs the extra `notify`."""

from __future__ import annotations

import re
from typing import Annotated

from penstock import extras
from penstock.language.definitions.decorator import action
from penstock.language.policies.policies import RetryPolicy
from penstock.language.schemas import Secret
from penstock.run.steering import NonRetryable


@action(
    ref="penstock.notify",
    executor="thread",
    timeout="1m",
    retry=RetryPolicy(max_attempts=5, initial_delay=2),
    title="{{ parameters.title }}",
)
def notify(urls: Annotated[str | list[str], Secret], title: str = "", body: str = "") -> int:
    """Send a message to each of `urls`, and return their number.

    `urls` are addresses of Apprise, such as `mailtos://user:password@example.org`: a list, or one text with spaces or commas
    between them. Each is sent to at least once: if one fails, the next attempt sends to all again. An address that
    Apprise does not know is not tried again.
    """
    with extras.needed():
        import apprise
    addresses = re.split(r"[\s,]+", urls.strip()) if isinstance(urls, str) else list(urls)
    services = []
    for number, address in enumerate(filter(None, addresses), 1):
        service = apprise.Apprise()
        if not service.add(address):
            raise NonRetryable(f"Apprise does not know address {number} of {len(addresses)}")
        services.append(service)
    if not services:
        raise NonRetryable("there is no address to send to")
    failed = [
        number
        for number, service in enumerate(services, 1)
        if not service.notify(title=title, body=body or title)
    ]
    if failed:
        raise ConnectionError(
            f"{len(failed)} of {len(services)} addresses did not take the message: {failed}"
        )
    return len(services)
