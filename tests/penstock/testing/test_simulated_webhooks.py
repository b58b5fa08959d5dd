"""Webhooks of a simulation: signed calls become events and end waits, and a refused call has the API's answer."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidInput, NotFound
from penstock.testing import Simulation
from tests.penstock.testing import invoices

PAID = b'{"invoice": 7, "id": "evt_1"}'


@pytest.fixture
def simulation() -> Simulation:
    return Simulation(invoices)


@pytest.mark.parametrize("signature", ["secret", "github", "stripe", "standard"])
def test_signed_call_becomes_an_event(simulation: Simulation, signature: str) -> None:
    simulation.webhook("bank", trigger=invoices.paid, signature=signature)
    response = simulation.call_webhook("bank", PAID)
    assert (response.status, response.event and response.event.payload) == (
        202,
        {"invoice": 7, "id": "evt_1"},
    )
    assert response.body == {"id": str(response.event and response.event.id)}
    assert [run.result for run in response.started] == ["booked 7"]
    assert simulation.runs == response.started


@pytest.mark.parametrize("signature", ["github", "stripe"])
def test_same_call_again_has_no_effect(simulation: Simulation, signature: str) -> None:
    simulation.webhook("bank", trigger=invoices.paid, signature=signature)
    first, again = (simulation.call_webhook("bank", PAID) for _ in range(2))
    assert (again.status, again.event, again.started) == (202, first.event, [])


def test_id_of_a_standard_call_is_its_key(simulation: Simulation) -> None:
    simulation.webhook("bank", trigger=invoices.paid, signature="standard")
    ids: tuple[dict[str, str], ...] = ({"webhook-id": "a"}, {"webhook-id": "a"}, {})
    events = [simulation.call_webhook("bank", PAID, headers=headers).event for headers in ids]
    assert events[0] == events[1] != events[2]


@pytest.mark.parametrize("signature", ["secret", "github", "stripe", "standard"])
def test_call_without_its_signature_is_refused(simulation: Simulation, signature: str) -> None:
    simulation.webhook("bank", trigger=invoices.paid, signature=signature, secret="YW5vdGhlciBzZWNyZXQ=")
    signed = simulation.call_webhook("bank", PAID, signed=False)
    assert (signed.status, signed.event, signed.headers) == (
        401,
        None,
        {"www-authenticate": 'Bearer realm="penstock"'},
    )
    assert "does not have a valid signature for webhook bank" in signed.body["detail"]
    assert ("clock" in signed.body["hint"]) == (signature in ("stripe", "standard"))
    assert simulation.runs == []


def test_signature_is_as_old_as_the_clock_says(simulation: Simulation) -> None:
    simulation.webhook("bank", trigger=invoices.paid, signature="standard")
    at = f"{simulation.now.timestamp():.0f}"
    simulation.advance("5m")
    assert simulation.call_webhook("bank", PAID, headers={"webhook-timestamp": at}).status == 202
    simulation.advance("1s")
    assert simulation.call_webhook("bank", PAID, headers={"webhook-timestamp": at}).status == 401


def test_query_and_headers_are_names_of_templates(simulation: Simulation) -> None:
    simulation.webhook(
        "bank",
        trigger=invoices.paid,
        payload={"invoice": "{{ query.n | int }}", "by": "{{ headers['x-by'] }}"},
    )
    response = simulation.call_webhook("bank", {}, query={"n": 7}, headers={"X-By": "ada"})
    assert response.event is not None
    assert response.event.payload == {"invoice": 7, "by": "ada"}


def test_call_completes_or_fails_a_wait(simulation: Simulation) -> None:
    simulation.webhook(
        "ci",
        trigger=invoices.paid,
        signature="github",
        completes="{{ 'ci:' ~ body.ref }}",
        fails="not body.ok",
        payload={"invoice": 1, "ok": "{{ body.ok }}"},
    )
    run, broken = (simulation.start(invoices.hands_over, id=f"ci:{ref}") for ref in ("main", "next"))
    response = simulation.call_webhook("ci", {"ref": "main", "ok": True})
    assert (response.settled, run.result) == ([run], {"ok": True, "invoice": 1})
    response = simulation.call_webhook("ci", {"ref": "next", "ok": False})
    assert response.settled == [broken]
    assert response.event is not None
    assert broken.error is not None
    assert f"the webhook ci reports a failure in event {response.event.id}" in broken.error["message"]


def test_call_that_cannot_complete_publishes_nothing(simulation: Simulation) -> None:
    simulation.webhook(
        "ci", trigger=invoices.paid, signature="github", completes="main", payload={"invoice": "{{ body }}"}
    )
    run = simulation.start(invoices.hands_over, id="main")
    assert simulation.call_webhook("ci", "x").status == 422
    response = simulation.call_webhook("ci", ["x" * 270_000])
    assert (response.status, response.event, run.status) == (422, None, "waiting")


def test_large_and_unknown_calls_are_refused_as_by_the_api(simulation: Simulation) -> None:
    simulation.webhook("bank", trigger=invoices.paid)
    assert simulation.call_webhook("bnak", PAID).status == 404
    assert simulation.call_webhook("bank", b'{"invoice": "' + b"x" * 400_000).status == 413
    refused = simulation.call_webhook("bank", {"invoice": "seven"})
    assert (refused.status, refused.body["detail"]) == (422, "payload.invoice: expected integer, got string")


def test_wrong_webhook_is_refused_when_it_is_set(simulation: Simulation) -> None:
    with pytest.raises(NotFound, match=r"knows no trigger 'invoices\.piad'"):
        simulation.webhook("bank", trigger="invoices.piad")
    with pytest.raises(InvalidInput, match="there is no signature scheme 'gitub'"):
        simulation.webhook("bank", trigger=invoices.paid, signature="gitub")
    with pytest.raises(InvalidInput, match="the secret is too short"):
        simulation.webhook("bank", trigger=invoices.paid, secret="short")
    with pytest.raises(InvalidInput, match="`completes` needs a key"):
        simulation.webhook("bank", trigger=invoices.paid, completes="{{ body.id }}")
    with pytest.raises(InvalidInput, match="bod"):
        simulation.webhook("bank", trigger=invoices.paid, payload={"invoice": "{{ bod.n }}"})
