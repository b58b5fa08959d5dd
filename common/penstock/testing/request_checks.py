"""The checks of requests that the code of actions makes in tests, as a worker does them."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.bounds import PAYLOAD_CAP
from penstock.client.durable_commands import signal_content
from penstock.client.signal_receivers import check_receiver
from penstock.client.starts import Request as StartRequest
from penstock.client.starts import check_start_options, debounce_options
from penstock.errors import InvalidInput
from penstock.language.terms.outside_names import check_name
from penstock.language.terms.system_triggers import HINT_PUBLISH, is_system
from penstock.run.outgoing import Effect, Publish, Signal, Start

MAX_REQUESTS = 1000
"""The maximum number of transactional requests of one attempt, as on a worker."""


def check_request(request: Effect) -> None:
    """Check the options of a request as a worker does. Raises InvalidInput if an argument or an option is not valid,
    and DefinitionError if the name of a signal is not."""
    if isinstance(request, Signal):
        check_receiver(request.execution_id, request.key)
        signal_content(request.name, request.value, PAYLOAD_CAP)
        return
    if request.key is not None:
        check_name(request.key, "the key")
    if isinstance(request, Publish):
        if not isinstance(request.trigger, str):
            raise InvalidInput(
                "the trigger is not a text", hint="Give the ref of the trigger, such as shop.order_placed."
            )
        if is_system(request.trigger):
            raise InvalidInput(f"{request.trigger} is not published", hint=HINT_PUBLISH)
        return
    if not isinstance(request.ref, str) or not isinstance(request.params, Mapping):
        raise InvalidInput(
            "a start takes a ref and a mapping of parameters", hint='start("shop.charge", {"order": 7})'
        )
    options = start_request(request)
    check_start_options(options)
    debounce_options(options)


def start_request(request: Start) -> StartRequest:
    """Return the request of an action in the form of a client's."""
    return StartRequest(
        request.ref,
        request.key,
        priority=request.priority,
        delay=request.delay,
        at=request.at,
        labels=request.labels,
        debounce=request.debounce,
        debounce_key=request.debounce_key,
        at_most=request.at_most,
        keep=request.keep,
    )


def no_transaction() -> InvalidInput:
    """Return the error of a transactional request in a durable function."""
    return InvalidInput(
        "a durable function cannot use transactional requests, because its body is replayed several times",
        hint="Publish and start in a step with a key, and signal in a step.",
    )
