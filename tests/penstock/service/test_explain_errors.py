"""The explanations of the errors of the driver."""

from __future__ import annotations

import asyncpg
import pytest

from penstock.errors import ConnectionFailed
from penstock.service.explain_errors import explained
from penstock.service.problems import http_status


@pytest.mark.parametrize(
    "error",
    [
        asyncpg.InternalClientError("got result for unknown protocol state 3"),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.AdminShutdownError("terminating connection due to administrator command"),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
)
def test_lost_connection_is_explained_as_an_outage(error: Exception) -> None:
    explanation = explained(error)
    assert isinstance(explanation, ConnectionFailed)
    assert http_status(explanation) == 503
    assert explanation.hint
