"""The answer to callers from outside while this process cannot read a secret. The log explains it, and the answer does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from penstock.errors import ConfigurationError

log = structlog.get_logger()


@contextmanager
def concealed_from_caller() -> Iterator[None]:
    """Replace a ConfigurationError, which names master keys, by one without a reason."""
    try:
        yield
    except ConfigurationError as error:
        log.error("api.secret_unreadable", reason=error.message, hint=error.hint)
        raise ConfigurationError(
            "the API cannot decrypt a secret that this call needs", hint="Call again later."
        ) from None
