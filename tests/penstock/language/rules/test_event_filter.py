"""The text of an event filter for people: with the values that it compares, and without secrets."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.language.rules.event_filter import filter_text
from penstock.language.schemas import Schema

BOUND: dict[str, Any] = {"id": 42, "ids": [1, 2], "parameters": {"order": 7, "customer": {"city": "Bonn"}}}


@pytest.mark.parametrize(
    ("filter", "text"),
    [
        (None, ""),
        ("event.payload.order_id == id", "where order_id = 42"),
        ("id == event.payload.order_id", "where order_id = 42"),
        ("3 < event.payload.n and event.payload.n <= id", "where n > 3 and n <= 42"),
        ("event.payload.order == parameters.order * 2", "where order = 14"),
        ("event.payload.lines[0].city != parameters.customer.city", 'where lines[0].city != "Bonn"'),
        ("event.payload.n in ids and event.payload.m not in [3]", "where n in [1,2] and m not in [3]"),
        (
            "event.source == 'shop' and event.payload == 1",
            'where event.source = "shop" and event.payload = 1',
        ),
        ("{{ event.payload.paid == true }}", "where paid = true"),
        (
            "event.payload.n == id or event.payload.n in ids",
            "that matches `event.payload.n == id or event.payload.n in ids` (id = 42, ids = [1,2])",
        ),
        ("not event.payload.open", "that matches `not event.payload.open`"),
        (
            "event.payload.n == parameters.order and event.payload.n == unknown",
            "that matches `event.payload.n == parameters.order and event.payload.n == unknown` (parameters.order = 7)",
        ),
        (
            "event.payload.n == id and event.payload.m == 2 ** 70",
            "that matches `event.payload.n == id and event.payload.m == 2 ** 70` (id = 42)",
        ),
        ("event.payload.n in {1: 2}", "that matches `event.payload.n in {1: 2}`"),
    ],
)
def test_filter_text_has_the_values_of_its_names(filter: str | None, text: str) -> None:
    assert filter_text(filter, BOUND) == text


def test_long_value_in_filter_text_is_cut() -> None:
    assert len(filter_text("event.payload.n == id", {"id": "x" * 500})) < 80


def test_value_compared_with_a_secret_of_the_payload_is_hidden() -> None:
    schema = Schema({"type": "object", "properties": {"pin": {"type": "string", "secret": True}, "n": {}}})
    text = filter_text("event.payload.pin == id and event.payload.n == id", BOUND, schema.mask)
    assert text == "where pin = *** and n = 42"


def test_secret_inside_an_item_of_a_list_is_hidden() -> None:
    pin = {"type": "string", "secret": True}
    card = {"type": "object", "properties": {"pin": pin, "n": {}}}
    schema = Schema({"type": "object", "properties": {"card": card, "pin": pin}})
    cards = [{"pin": "1234", "n": 1}, {"pin": "5678", "n": 2}]
    for operator in ("in", "not in"):
        text = filter_text(f"event.payload.card {operator} ids", {"ids": cards}, schema.mask)
        assert text == f'where card {operator} [{{"pin":"***","n":1}},{{"pin":"***","n":2}}]'
    assert filter_text("event.payload.pin in ids", BOUND, schema.mask) == "where pin in ***"
    assert filter_text("event.source in ids", BOUND, schema.mask) == "where event.source in [1,2]"
    assert filter_text("event.payload.card == ids", {"ids": cards}, schema.mask).count("1234") == 1


@pytest.mark.parametrize(
    ("filter", "values"),
    [
        ("event.payload.pin == id or event.payload.n == id", ""),
        ("event.payload.pin == id and event.payload.n == 2 ** 70", ""),
        ("event.payload.n == id or event.payload == id", " (id = 42)"),
        ("event.payload.n == id or event.source == 'shop'", " (id = 42)"),
        ("event.payload.n == id or event == id", " (id = 42)"),
    ],
)
def test_condition_that_reads_a_secret_is_shown_without_values(filter: str, values: str) -> None:
    schema = Schema({"type": "object", "properties": {"pin": {"type": "string", "secret": True}, "n": {}}})
    assert filter_text(filter, BOUND, schema.mask) == f"that matches `{filter}`{values}"
