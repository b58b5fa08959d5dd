"""`Client` and `HttpClient` have the same methods for the same things: the names, the parameters and the records are the same.

The command line calls either, so a command has one body. mypy checks each call for both classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.client.breakers import Breakers
from penstock.client.client import Client
from penstock.client.holds import Holds
from penstock.client.http_client import HttpClient
from penstock.client.http_subjects import (
    HttpBreakers,
    HttpHolds,
    HttpLimits,
    HttpRules,
    HttpSchedules,
    HttpWorkers,
)
from penstock.client.limits import Limits
from penstock.client.rules import Rules
from penstock.client.schedules import Schedules
from penstock.client.workers import Workers

PAIRS: Mapping[type, type] = {
    HttpClient: Client,
    HttpBreakers: Breakers,
    HttpHolds: Holds,
    HttpLimits: Limits,
    HttpRules: Rules,
    HttpSchedules: Schedules,
    HttpWorkers: Workers,
}
ONLY_HTTP = {"HttpClient.get_json", "HttpClient.log_lines"}
"""Any other route, and the lines of one execution. `penstock logs` prints those of tasks only on the database."""
OTHER_RECORDS = {
    "HttpSchedules.all",
    "HttpSchedules.enable",
    "HttpSchedules.disable",
    "HttpSchedules.pause",
}
"""Methods of which the API returns the summary of what `Client` returns."""


def pairs() -> list[tuple[str, Any, Any]]:
    """Return each public method of the HTTP clients, with the method of the client that has its name, or None."""
    methods = []
    for remote, local in PAIRS.items():
        for name, method in inspect.getmembers(remote, inspect.isfunction):
            if not name.startswith("_") and f"{remote.__name__}.{name}" not in ONLY_HTTP:
                methods.append((f"{remote.__name__}.{name}", method, getattr(local, name, None)))
    return methods


@pytest.mark.parametrize(("name", "remote", "local"), pairs(), ids=[name for name, _, _ in pairs()])
def test_method_over_http_fits_that_of_client(name: str, remote: Any, local: Any) -> None:
    assert local is not None, f"{name} has no counterpart"
    over_http, direct = inspect.signature(remote), inspect.signature(local)
    if name not in OTHER_RECORDS:
        assert over_http.return_annotation == direct.return_annotation
    for parameter in over_http.parameters.values():
        counterpart = direct.parameters[parameter.name]
        assert parameter.annotation == counterpart.annotation, parameter
        # The server knows the caller by its token, so that `by` may be left out over HTTP.
        assert parameter.default == counterpart.default or parameter.name == "by", parameter


def test_each_pair_has_methods() -> None:
    assert {name.partition(".")[0] for name, _, _ in pairs()} == {remote.__name__ for remote in PAIRS}
    assert len(pairs()) > 35
