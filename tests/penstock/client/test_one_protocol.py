"""The four clients have the same methods for the same things: the names, the parameters and the records are the same.

The command line calls either, so a command has one body. mypy checks each call for both classes.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from penstock.client import sync_http_client, sync_subjects
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
    HttpViews,
    HttpWorkers,
)
from penstock.client.limits import Limits
from penstock.client.rules import Rules
from penstock.client.saved_views import Views
from penstock.client.schedules import Schedules
from penstock.client.sync_client import SyncClient
from penstock.client.sync_http_client import SyncHttpClient
from penstock.client.workers import Workers

PAIRS: Mapping[type, type] = {
    HttpClient: Client,
    HttpBreakers: Breakers,
    HttpHolds: Holds,
    HttpLimits: Limits,
    HttpRules: Rules,
    HttpSchedules: Schedules,
    HttpViews: Views,
    HttpWorkers: Workers,
}
BLOCKING_PARTS = (
    (sync_subjects.SyncBreakers, Breakers),
    (sync_subjects.SyncHolds, Holds),
    (sync_subjects.SyncLimits, Limits),
    (sync_subjects.SyncRules, Rules),
    (sync_subjects.SyncSchedules, Schedules),
    (sync_subjects.SyncViews, Views),
    (sync_subjects.SyncWorkers, Workers),
    (sync_http_client.SyncHttpBreakers, HttpBreakers),
    (sync_http_client.SyncHttpHolds, HttpHolds),
    (sync_http_client.SyncHttpLimits, HttpLimits),
    (sync_http_client.SyncHttpRules, HttpRules),
    (sync_http_client.SyncHttpSchedules, HttpSchedules),
    (sync_http_client.SyncHttpViews, HttpViews),
    (sync_http_client.SyncHttpWorkers, HttpWorkers),
)
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


CLIENTS: Mapping[type, Mapping[str, str]] = {
    Client: {
        "get_json": "it reads any route of the API",
        "log_lines": "`penstock logs` reads them by a query of its own",
    },
    SyncClient: {
        "get_json": "it reads any route of the API",
        "log_lines": "`penstock logs` reads them by a query of its own",
        "publish_staged": "only the product's own code, which awaits, stages messages",
    },
    HttpClient: {
        "attempts": "`described` has them",
        "close": "`async with` closes it",
        "connect": "it takes an address, and no settings",
        "flush": "it has no messages of its own: the API has stored what it answers",
        "get": "`described` has it",
        "publish_staged": "it has no transaction",
        "start_many": "the API starts one execution a request",
    },
    SyncHttpClient: {
        "attempts": "`described` has them",
        "connect": "it takes an address, and no settings",
        "flush": "it has no messages of its own: the API has stored what it answers",
        "get": "`described` has it",
        "publish_staged": "it has no transaction",
        "start_many": "the API starts one execution a request",
    },
}
"""The clients, each with the methods of the others that it lacks, and the reasons."""
PARTS = ("breakers", "holds", "limits", "rules", "schedules", "views", "workers")


def public_names(kind: type) -> set[str]:
    names = {name for name in dir(kind) if not name.startswith("_")}
    # The HTTP clients set their parts in __init__.
    return names | {name for name in PARTS if f"self.{name} = " in inspect.getsource(kind)}


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_client_lacks_no_method_without_a_reason(kind: type) -> None:
    every = set().union(*map(public_names, CLIENTS))
    assert every - public_names(kind) == set(CLIENTS[kind])


@pytest.mark.parametrize(("blocking", "remote"), BLOCKING_PARTS, ids=lambda part: part.__name__)
def test_blocking_part_has_all_methods(blocking: type, remote: type) -> None:
    assert public_names(blocking) == public_names(remote)


def test_each_pair_has_methods() -> None:
    assert {name.partition(".")[0] for name, _, _ in pairs()} == {remote.__name__ for remote in PAIRS}
    assert len(pairs()) > 35
