"""Orders that are paid, and orders that are forgotten: rules for several events together.

penstock test orders.remind --module examples/windows.py --events events.json
penstock dev --module examples/windows.py
penstock publish orders.placed order=7
"""

from __future__ import annotations

from penstock import Pack, Rule, Trigger, Window, action

pack = Pack("orders")
placed = Trigger("placed", schema={"order": "integer"})
paid = Trigger("paid", schema={"order": "integer", "amount": "number"})
refused = Trigger("refused", schema={"order": "integer", "card": "string"})


@action
async def ship(order: int, amount: float) -> str:
    return f"order {order} is sent, for {amount}"


@action
async def remind(order: int) -> str:
    return f"order {order} is not paid yet"


@action
async def block(card: str, orders: list[int]) -> str:
    return f"card {card} was refused for {orders}"


Rule(
    "ship",
    action=ship,
    params={"order": "{{ payload.order }}", "amount": "{{ parts.payment.payload.amount }}"},
    window=Window(
        sequence=[placed, {"trigger": paid, "name": "payment", "when": "payload.amount > 0"}],
        by="payload.order",
        within="1d",
    ),
)
Rule(
    "remind",
    action=remind,
    params={"order": "{{ payload.order }}"},
    window=Window(absence=[placed, paid], by="payload.order", within="1h"),
)
Rule(
    "block",
    action=block,
    params={"card": "{{ payload.card }}", "orders": "{{ events | map(attribute='payload.order') | list }}"},
    window=Window(count=[refused], at_least=3, by="payload.card", within="10m"),
)
