"""HTTP actions, and a workflow of one."""

from __future__ import annotations

from typing import Any

from penstock import DurableContext, action, current, http_action, workflow

SHOP = "https://shop.example.org"
RETRY = {"max_attempts": 3, "initial_delay": 10, "jitter": 0}

show_order = http_action(
    "lookups.show_order",
    SHOP + "/orders/{{ parameters.id }}",
    parameters={"id": {"type": "integer", "required": True}},
    retry=RETRY,
    options={
        "secrets": {"token": "shop_token"},
        "request": {
            "query": {"expand": ["lines", "customer"]},
            "headers": {"Authorization": "Bearer {{ secrets.token }}"},
            "expect": [200, 404],
            "result": "{{ response.body if response.status == 200 else none }}",
        },
    },
)
place_order = http_action(
    "lookups.place_order",
    SHOP + "/orders",
    parameters={"item": {"type": "string", "required": True}},
    options={"request": {"method": "POST", "body": {"item": "{{ parameters.item }}"}}},
    retry=RETRY,
)
list_orders = http_action(
    "lookups.list_orders",
    SHOP + "/orders",
    options={
        "request": {
            "pages": {
                "items": "{{ response.body.orders }}",
                "next": "{{ {'cursor': response.body.next} if response.body.next else none }}",
            }
        }
    },
)
impatient = http_action(
    "lookups.impatient", SHOP + "/slow", options={"timeout": 30, "request": {"answer": "text"}}, retry=RETRY
)
short = http_action("lookups.short", SHOP + "/slow", timeout=20, options={"request": {}})
hook = http_action("lookups.hook", SHOP + "/hook", options={"secret_env": "LOOKUPS_SECRET"})
moved = http_action("lookups.moved", SHOP + "/old", options={"request": {}})


@action(pack="lookups")
async def total_in_code(id: int) -> Any:
    order = await current().run(show_order.ref, {"id": id})
    return order["total"]


@action(pack="lookups")
async def total_durable(ctx: DurableContext, id: int) -> Any:
    order = await ctx.run(show_order.ref, {"id": id})
    return order["total"]


@workflow(pack="lookups")
def total(id: int) -> Any:
    order = show_order(id=id)
    return {"total": order.total}
