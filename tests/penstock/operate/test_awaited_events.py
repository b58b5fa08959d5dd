"""The condition of a wait for an event is shown with its values, of which secrets are masked."""

from __future__ import annotations

import orjson

from penstock.operate.awaited_events import condition_text
from penstock.operate.masking import Masking

SCHEMA = {"type": "object", "properties": {"pin": {"type": "string", "secret": True}, "order": {}}}
MASKING = Masking(
    [("workflow", "shop.ship", {"parameters": SCHEMA}), ("trigger", "shop.paid", {"schema": SCHEMA})]
)


def test_secret_parameter_in_condition_is_masked() -> None:
    filter = "event.payload.order == parameters.order and event.payload.code == parameters.pin"
    params = {"filter": filter, "bound": {"parameters": {"order": 7, "pin": "1234"}}}
    text = condition_text(MASKING, "shop.paid", orjson.dumps(params).decode(), "shop.ship")
    assert text == "where order = 7 and code = ***"


def test_value_compared_with_secret_of_event_is_masked() -> None:
    params = {"filter": "event.payload.pin == pin", "bound": {"pin": "1234"}}
    assert condition_text(MASKING, "shop.paid", orjson.dumps(params).decode(), None) == "where pin = ***"


def test_wait_without_condition_has_no_text() -> None:
    assert condition_text(MASKING, "shop.paid", '{"filter": null, "bound": {}}', None) == ""
    assert condition_text(MASKING, "shop.paid", None, None) == ""
