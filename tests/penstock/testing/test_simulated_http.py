"""HTTP actions of a simulation run as on a worker. The test gives the responses, and sees the requests."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import socket
from datetime import timedelta
from typing import Any

import httpcore
import httpx
import pytest

from penstock import http_action
from penstock.errors import InvalidInput, NotFound
from penstock.testing import Simulation
from tests.penstock.testing import lookups
from tests.penstock.testing.lookups import SHOP

TOKEN = "t0ken of the shop"


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(lookups).secret("shop_token", TOKEN)


def _error(run: Any) -> str:
    assert run.error is not None
    return f"{run.error['type']}: {run.error['message']}"


def test_request_is_rendered_and_its_response_is_the_result(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders/7", json={"total": 12})
    assert simulation.run(lookups.total, id=7).result == {"total": 12}
    [request] = simulation.requests
    assert (request.method, request.url) == ("GET", f"{SHOP}/orders/7?expand=lines&expand=customer")
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.at == simulation.now


@pytest.mark.parametrize("caller", [lookups.total_in_code, lookups.total_durable])
def test_code_runs_an_http_action(simulation: Simulation, caller: Any) -> None:
    simulation.respond(f"{SHOP}/orders/7", status=503, times=1)
    simulation.respond(f"{SHOP}/orders/7", json={"total": 12})
    assert simulation.run(caller, id=7).result == 12
    assert len(simulation.requests) == 2


def test_expected_status_gives_the_result_of_the_template(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders/*", status=404, text="gone")
    assert simulation.run(lookups.show_order, id=7).result is None


def test_body_and_idempotency_key_are_sent(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders", method="post", status=503, times=1)
    simulation.respond(f"{SHOP}/orders", method="POST", status=201, json={"id": 8})
    run = simulation.run(lookups.place_order, item="pen")
    assert run.result == {"id": 8}
    assert [request.json for request in simulation.requests] == [{"item": "pen"}] * 2
    assert {request.headers["idempotency-key"] for request in simulation.requests} == {str(run.id)}
    assert [step.status for step in run.steps] == ["failed", "completed"]


@pytest.mark.parametrize("value", ["3600", "Thu, 01 Jan 2026 01:00:00 GMT"])
def test_retry_after_is_obeyed_on_the_clock(simulation: Simulation, value: str) -> None:
    simulation.respond(f"{SHOP}/orders/7", status=429, headers={"Retry-After": value}, times=1)
    simulation.respond(f"{SHOP}/orders/7", json={})
    began = simulation.now
    assert simulation.run(lookups.show_order, id=7).result == {}
    assert [request.at - began for request in simulation.requests] == [timedelta(0), timedelta(hours=1)]


def test_status_that_is_not_retried_fails_with_the_answer(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders/7", status=403, text=f"not with {TOKEN}")
    run = simulation.run(lookups.show_order, id=7)
    assert [step.status for step in run.steps] == ["failed"]
    assert _error(run) == f"HttpStatus: GET {SHOP}/orders/7: the answer is 403: not with ***"
    assert run.error is not None
    assert run.error["answer"] == {"status": 403, "body": "not with ***"}


def test_secret_is_masked_in_the_result_and_the_log(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders/7", json={"token": TOKEN, "of": [TOKEN]})
    run = simulation.run(lookups.show_order, id=7)
    assert TOKEN not in str(run.result)
    assert run.steps[0].log == [
        line for line in run.steps[0].log if line.startswith(f"GET {SHOP}/orders/7: 200 ")
    ]
    assert len(run.steps[0].log) == 1


def test_secret_that_is_not_set_fails_the_attempt() -> None:
    simulation = Simulation(lookups).respond(f"{SHOP}/orders/7", json={})
    run = simulation.run(lookups.show_order, id=7)
    assert _error(run).startswith("NotFound: tenant public has no secret shop_token")
    assert simulation.requests == []
    with pytest.raises(InvalidInput, match="a secret has"):
        simulation.secret("shop_token", "x")


def test_pages_are_read_one_after_the_other(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders", json={"orders": [1, 2], "next": "b"})
    simulation.respond(f"{SHOP}/orders?cursor=b", json={"orders": [3], "next": None})
    assert simulation.run(lookups.list_orders).result == [1, 2, 3]
    assert [request.url for request in simulation.requests] == [f"{SHOP}/orders", f"{SHOP}/orders?cursor=b"]


def test_redirect_is_followed(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/old", status=301, headers={"Location": "/new"})
    simulation.respond(f"{SHOP}/new", content=gzip.compress(b"[1]"), headers={
        "Content-Encoding": "gzip", "Content-Type": "application/json"})  # fmt: skip
    assert simulation.run(lookups.moved).result == [1]


@pytest.mark.parametrize(
    ("raises", "kind"),
    [
        (ConnectionRefusedError("no"), "ConnectError: no"),
        (ConnectionResetError("no"), "ReadError: no"),
        (TimeoutError("no"), "ReadTimeout: no"),
        (httpx.ConnectTimeout("no"), "ConnectTimeout: no"),
        (httpcore.RemoteProtocolError("no"), "RemoteProtocolError: no"),
        (ConnectionError, "ConnectError: "),
    ],
)
def test_error_of_the_connection_is_retried(simulation: Simulation, raises: Any, kind: str) -> None:
    simulation.respond(f"{SHOP}/orders/7", raises=raises, times=1)
    simulation.respond(f"{SHOP}/orders/7", json=1)
    run = simulation.run(lookups.show_order, id=7)
    assert run.result == 1
    error = run.steps[0].error
    assert error is not None
    assert error["message"].endswith(f"the address could not be reached or fell silent: {kind}")


def test_slow_server_takes_its_time_on_the_clock(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/slow", takes="29s", text="slow", times=1)
    run = simulation.start(lookups.impatient)
    assert run.status == "running"
    simulation.advance("29s")
    assert run.result == "slow"
    simulation.respond(f"{SHOP}/slow", takes="31s", text="too slow")
    run = simulation.run(lookups.impatient)
    assert "ReadTimeout" in _error(run)
    assert [step.ended_at and (step.ended_at - step.began_at).total_seconds() for step in run.steps] == [
        30
    ] * 3


def test_attempt_times_out_while_its_server_is_slow(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/slow", takes="25s", json=1)
    run = simulation.run(lookups.short)
    assert run.status == "timeout"
    assert simulation.now - run.steps[0].began_at == timedelta(seconds=20)


def test_hook_is_signed_at_the_time_of_the_clock(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOKUPS_SECRET", "a secret of sixteen")
    simulation.respond(f"{SHOP}/hook", json={"ok": True})
    run = simulation.run(lookups.hook)
    assert run.result == {"ok": True}
    [request] = simulation.requests
    at = f"{simulation.now.timestamp():.0f}"
    signed = f"{run.id}:1.{at}.".encode() + request.content
    expected = base64.b64encode(hmac.new(b"a secret of sixteen", signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-timestamp"] == at
    assert request.headers["webhook-signature"] == f"v1,{expected}"


def test_request_without_a_response_ends_the_test(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders/7", json={}, times=1)
    simulation.run(lookups.show_order, id=7)
    for id in (7, 8):
        with pytest.raises(NotFound, match=f"no response left for GET {SHOP}/orders/{id}") as error:
            simulation.run(lookups.show_order, id=id)
        assert "simulation.respond" in (error.value.hint or "")


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("https://shop.example.org", "https://shop.example.org"),
        ("https://shop.example.org?a=1", "https://shop.example.org/?a=1"),
        ("https://SHOP.example.org:443/x", "https://shop.example.org/x?a=1"),
        ("https://shop.example.org/ä", "https://shop.example.org/%C3%A4"),
        ("https://*.example.org", "https://shop.example.org/"),
        ("https://shop.example.org/*/lines", "https://shop.example.org/orders/7/lines"),
        ("https://shop.example.org/x?*b=2", "https://shop.example.org/x?a=1&b=2"),
    ],
)
def test_address_fits_its_requests(address: str, url: str) -> None:
    action = http_action("lookups.get", url, options={"request": {}})
    assert Simulation(action).respond(address, json=1).run(action).result == 1


@pytest.mark.parametrize(
    "address", ["https://shop.example.org/x?a=2", "http://shop.example.org/x", f"{SHOP}/xx"]
)
def test_other_address_does_not_fit(address: str) -> None:
    action = http_action("lookups.get", f"{SHOP}/x?a=1", options={"request": {}})
    with pytest.raises(NotFound):
        Simulation(action).respond(address, json=1).run(action)


def test_fake_replaces_the_request(simulation: Simulation) -> None:
    simulation.fake(lookups.show_order, returns={"total": 3})
    assert simulation.run(lookups.total, id=7).result == {"total": 3}
    assert simulation.requests == []


def test_lost_worker_has_sent_its_request(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders", json=1)
    simulation.lose_worker(lookups.place_order)
    run = simulation.run(lookups.place_order, item="pen")
    assert [step.status for step in run.steps] == ["lost", "completed"]
    assert len(simulation.requests) == 2


async def test_request_is_made_from_a_coroutine(simulation: Simulation) -> None:
    simulation.respond(f"{SHOP}/orders/7", json=1)
    assert simulation.run(lookups.show_order, id=7).result == 1


def test_no_socket_is_opened_and_no_name_is_resolved(
    simulation: Simulation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a simulation has no network")

    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    simulation.respond(f"{SHOP}/orders/7", json={"total": 12})
    assert simulation.run(lookups.total, id=7).status == "completed"


def test_wrong_responses_are_refused(simulation: Simulation) -> None:
    for address in ("shop.example.org/orders", "ftp://shop.example.org/", "https://"):
        with pytest.raises(InvalidInput, match="is not an http or https URL"):
            simulation.respond(address)
    with pytest.raises(InvalidInput, match="more than one body"):
        simulation.respond(SHOP, json={}, text="{}")
    with pytest.raises(InvalidInput, match="99 is not a status"):
        simulation.respond(SHOP, status=99)
    with pytest.raises(InvalidInput, match="a connection does not raise KeyError"):
        simulation.respond(SHOP, raises=KeyError)
