"""Triggers, rules, routes and limits, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from penstock.errors import DefinitionError
from penstock.language.definitions import (
    Breaker,
    Limit,
    Pack,
    Route,
    Rule,
    Trigger,
    action,
    trigger,
)
from tests.penstock.language.definitions.refusals import refused

pack = Pack("shop")


class Order(BaseModel):
    """An order."""

    id: str
    amount: int


@dataclass
class Small:
    id: str
    amount: int


@action
def charge(customer: str = "") -> None: ...


def test_a_payload_is_described_by_a_model_a_dataclass_or_a_schema_alike() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "amount": {"type": "integer"}},
        "required": ["id", "amount"],
    }
    short = {"id": {"type": "string", "required": True}, "amount": {"type": "integer", "required": True}}
    made = [Trigger("order_placed", schema=one) for one in (Small, schema, short)]
    assert len({one.document().digest for one in made}) == 1
    assert made[0].document().body == {
        "ref": "shop.order_placed",
        "schema": {**schema, "required": ["amount", "id"]},
    }
    assert Trigger("order_placed", schema=Order).document().body["schema"]["description"] == "An order."


def test_a_trigger_without_a_schema_takes_any_payload() -> None:
    assert Trigger("any.thing").document().body == {"ref": "any.thing"}


def test_wrong_triggers_are_refused() -> None:
    refused(lambda: Trigger("Order Placed"), "is not a ref", "order_placed")
    refused(lambda: Trigger("shop.order", schema={"type": "objekt"}), "not a JSON Schema")
    refused(lambda: Trigger("shop.order", shcema={}), "shcema: unknown option", "schema")  # type: ignore[call-arg]


def test_a_function_that_looks_for_events_is_a_trigger() -> None:
    @trigger(every="30s", schema=Small)
    async def new_files(state: dict[str, Any]) -> list[dict[str, Any]]:
        """New files."""
        return []

    assert new_files.kind == "trigger"
    assert (new_files.ref, new_files.is_coroutine) == ("shop.new_files", True)
    assert new_files.document().body["poll"] == {"every": 30}
    assert new_files.document().body["description"] == "New files."
    assert new_files.function is not None

    with pytest.raises(DefinitionError, match="takes parameters that it cannot get"):

        @trigger(every="30s")
        def other(folder: str) -> None: ...

    with pytest.raises(DefinitionError, match=r"poll\.every: must be longer"):

        @trigger(every=0)
        def never() -> None: ...


def test_a_rule_refers_to_objects_or_refs_and_short_names_mean_its_own_pack() -> None:
    placed = Trigger("order_placed")
    by_object = Rule("big", trigger=placed, action=charge, when="payload.amount > 100")
    by_ref = Rule("shop.big", trigger="shop.order_placed", action="shop.charge", when="payload.amount > 100")
    by_name = Rule("big", trigger="order_placed", action="charge", when="payload.amount > 100")
    assert by_object.document() == by_ref.document() == by_name.document()
    assert by_object.document().body == {
        "ref": "shop.big",
        "trigger": "shop.order_placed",
        "action": "shop.charge",
        "when": "payload.amount > 100",
    }


def test_wrong_rules_are_refused_with_the_option_that_is_wrong() -> None:
    def rule(**options: Any) -> Callable[[], object]:
        return lambda: Rule("big", **{"trigger": "placed", "action": "charge", **options})

    refused(rule(when="payload.amount >"), "when: ")
    refused(rule(params={"customer": "{{ payload.id"}), "params: ")
    refused(rule(tigger="x"), "tigger: unknown option", "trigger")
    refused(rule(action=3), "action: is not a ref")
    refused(rule(enabled="yes"), "enabled: ")
    refused(rule(priority=10**9), "priority: ")
    refused(rule(expires="never"), "expires: is not a duration")
    refused(lambda: Rule("big", trigger="placed"), "action: is missing")  # type: ignore[call-arg]


def test_a_route_is_a_pattern_and_a_queue() -> None:
    assert Route("*::ml::*", "gpu").document().body == {
        "ref": "*::ml::*",
        "pattern": "*::ml::*",
        "route": "gpu",
    }
    refused(lambda: Route("a::b**", "gpu"), "glued to other characters", "segment of its own")
    refused(lambda: Route("a", "no such queue"), "is not a name")
    refused(lambda: Route("a", "b", positon=3), "positon: unknown option", "position")  # type: ignore[call-arg]


def test_a_limit_names_its_number_and_its_scope() -> None:
    made = Limit(
        5, by=["customer", "order.region"], when_full="cancel_new", max_waiting=0, ref="db", scope=pack
    )
    assert made.document().body == {
        "ref": "shop.db",
        "scope": "shop",
        "max": 5,
        "by": ["customer", "order.region"],
        "when_full": "cancel_new",
        "max_waiting": 0,
    }
    scopes = ["global", "*", "shop", charge, "shop.charge"]
    assert [Limit(1, ref="a.b", scope=one).scope for one in scopes] == [
        "*",
        "*",
        "shop",
        "shop.charge",
        "shop.charge",
    ]


@pytest.mark.parametrize(
    ("rate", "count", "seconds"),
    [
        ("100/min", 100, 60),
        ("5/s", 5, 1),
        ("1000 per hour", 1000, 3600),
        ("3/10s", 3, 10),
        ("1/day", 1, 86_400),
    ],
)
def test_rates_are_read_as_people_write_them(rate: str, count: int, seconds: int) -> None:
    made = Limit(rate=rate).rate
    assert made is not None
    assert (made.count, made.seconds) == (count, seconds)


def test_a_burst_makes_the_window_as_long_as_it_takes_to_refill() -> None:
    made = Limit(rate="100/min", burst=10).rate
    assert made is not None
    assert (made.count, made.seconds) == (10, 6)


@pytest.mark.parametrize(
    "path", ["labels.", "labels.Customer", "labels.7", "labels.a b", f"labels.{'a' * 64}"]
)
def test_wrong_label_of_a_limit_or_breaker_is_refused(path: str) -> None:
    refused(lambda: Limit(1, by=["region", path]), "by: is not a path of a label", "labels.customer")
    refused(lambda: Breaker(1, by=path), "by: is not a path of a label", "labels.customer")
    refused(lambda: Limit(1, fair=path), "fair: is not a path of a label", "labels.customer")


def test_a_limit_and_a_breaker_group_by_labels_and_parameters() -> None:
    limit = Limit(5, by=["customer", "labels.order.id"], fair="labels.region", ref="shop.db", scope="shop")
    assert limit.document().body["by"] == ["customer", "labels.order.id"]
    assert limit.document().body["fair"] == ["labels.region"]
    assert Breaker(1, by="labels.a..b-").by == ("labels.a..b-",)


def test_wrong_limits_are_refused() -> None:
    refused(lambda: Limit(), "limits nothing", "Limit(5)")
    refused(lambda: Limit(0), "max: ")
    refused(lambda: Limit(1, by="no path!"), "by: is not a path", "order.customer.id")
    refused(lambda: Limit(1, by=["a", "a"]), "twice")
    refused(lambda: Limit(1, by=["labels.a", "labels.a"]), "twice")
    refused(lambda: Limit(rate="often"), "rate: is not a rate", "100/min")
    refused(lambda: Limit(rate="0/s"), "rate: is not a rate")
    refused(lambda: Limit(1, burst=3), "burst", "rate")
    refused(lambda: Limit(1, ref="shop.db"), "a ref but no scope")
    refused(lambda: Limit(1, scope="shop"), "a scope but no ref")
    refused(lambda: Limit(1, ref="shop.db", scope="Not This"), "scope: covers nothing")
    refused(lambda: Limit(rate="1/min", when_full="cancel_running"), "cancel_running needs max", "cancel_new")
    refused(lambda: Limit(5, per="1m", when_full="cancel_running"), "cancel_running needs max")
    refused(lambda: Limit(1, wen_full="x"), "wen_full: unknown option", "when_full")  # type: ignore[call-arg]


def test_pack_names_are_checked() -> None:
    refused(lambda: Pack("My Shop"), "is not a pack's name", "my_shop")
