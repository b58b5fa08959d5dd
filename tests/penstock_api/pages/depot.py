"""The definitions and history where the tests look at pages: something for each of them. A payload would run a script in the
browsers of other people wherever its text is not escaped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from penstock import DurableContext, Limit, NonRetryable, Rule, Schedule, Trigger, Window, action
from penstock.errors import PenstockError
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml
from penstock.operate import access, people, saved_views, secrets, subscriptions, webhooks
from penstock.run.steering import AskInquiry
from penstock.store.outbox import dead_letters
from penstock.store.outbox.dead_letters import KeptLetter
from tests.flows.installation import Installation

EVIL = """</script><script>window.hit=1</script>"><img src=x onerror="window.hit=1">'{{7*7}}\u202e"""
SHOWN = "<img src=x onerror="
"""What of it can be seen where it is shown as what it is."""


@action(pack="depot", description=f"Looks whether it is there. {EVIL}")
async def check(
    order: Annotated[int, Field(ge=1, description=f"Which one. {EVIL}")],
    words: Annotated[str, Field(max_length=500)] = "a few",
    how: Literal["by road", "by rail", '<img src=x onerror="window.hit=1">'] = "by road",
    when: datetime | None = None,
    fragile: bool = False,
    pin: Annotated[str, Field(json_schema_extra={"secret": True})] = "",
    parts: list[str] = [],  # noqa: B006
) -> dict[str, Any]:
    logging.getLogger("depot").warning("order %s: %s", order, words)
    return {"order": order, "words": words}


@action(pack="depot", limits=[Limit(2)])
async def load(order: int, seconds: float = 0.02) -> str:
    await asyncio.sleep(seconds)
    return f"loaded {order}"


@action(pack="depot")
async def weigh(parcel: int) -> int:
    logging.getLogger("depot").warning("parcel %s", parcel)
    return parcel * 2


@action(pack="depot", title="trip {{ parameters.order }}", retry={"max_attempts": 2, "initial_delay": 0.01})
async def drive(order: int, ok: bool = True) -> str:
    if not ok:
        raise NonRetryable(f"the road is closed {EVIL}")
    return "there"


@action(pack="depot")
async def ask() -> Any:
    raise AskInquiry(
        f"May it leave? {EVIL}",
        schema={
            "type": "object",
            "properties": {
                "leave": {"type": "boolean", "description": EVIL},
                "by": {"type": "string"},
            },
            "required": ["leave"],
        },
        assignee=EVIL,
    )


WHEN: dict[str, Any] = {
    "type": "object",
    "properties": {"leave": {"type": "boolean"}, "by": {"type": "string"}},
    "required": ["leave"],
}
LET_IN = asyncio.Event()


@action(pack="depot")
async def confirm() -> Any:
    raise AskInquiry("When?", schema=WHEN)


@action(
    pack="depot",
    limits=[Limit(1)],
    description="One keeps the next from beginning for as long as a test wants.",
)
async def enter(first: bool = False) -> Any:
    if not first:
        raise AskInquiry("When?", schema=WHEN)
    await LET_IN.wait()


async def _packed(parcel: int, words: str = "") -> dict[str, Any]:
    await asyncio.sleep(0.02)
    return {"parcel": parcel, "words": words}


@action(pack="depot", description=f"Packs what was ordered, and waits until it is fetched. {EVIL}")
async def pack_up(ctx: DurableContext, parcels: int, fail: bool = False) -> str:
    ctx.set("packs", EVIL)
    for parcel in range(parcels):
        await ctx.step("pack", _packed, parcel, EVIL)
    await ctx.run("depot.weigh", parcel=1)
    await asyncio.gather(ctx.step("label", _packed, 1), ctx.step("seal", _packed, 2))
    if fail:
        raise NonRetryable(f"the box is broken {EVIL}")
    if parcels > 2:
        await ctx.sleep("1h")
    return str(await ctx.signal("fetched"))


placed = Trigger(
    "depot.placed",
    schema={
        "type": "object",
        "properties": {"order": {"type": "integer"}, "note": {"type": "string"}},
        "required": ["order"],
    },
)
TRUCK = from_yaml("""
workflow: depot.truck
description: Loads a truck and sends it on its way.
parameters: {order: {type: integer, required: true}, ok: {type: boolean, default: true}}
tasks:
  check: {action: depot.check, input: {order: "{{ parameters.order }}"}}
  load: {action: depot.load, input: {order: "{{ parameters.order }}"}, needs: [check]}
  weigh: {action: depot.weigh, with_items: "{{ [1, 2, 3, 4] }}", input: {parcel: "{{ item }}"}, needs: [check]}
  drive:
    action: depot.drive
    needs: [load, weigh]
    input: {order: "{{ parameters.order }}", ok: "{{ parameters.ok }}"}
    next:
      - when: failed() and error.message != "<script>window.hit=1</script>"
        do: again
  again: {action: depot.check, input: {order: "{{ parameters.order }}", words: "once more"}}
output: {said: "{{ tasks.load.result }}"}
""")
TOUR = from_yaml("""
workflow: depot.tour
tasks:
  first: {workflow: depot.truck, input: {order: 1}}
  second: {workflow: depot.truck, input: {order: 2}, needs: [first]}
  leave: {inquiry: {prompt: "May the tour begin?", schema: {type: boolean}}, needs: [first]}
  home: {action: depot.check, input: {order: 3}, needs: [leave, second]}
""")
RULES = (
    Rule(
        "depot.large",
        trigger=placed,
        when=f"payload.note != {EVIL!r} or payload.order > 100",
        action=drive,
        params={"order": "{{ payload.order }}"},
    ),
    Rule("depot.any", trigger=placed, action=check, params={"order": "{{ payload.order }}"}),
    Rule(
        "depot.broken",
        trigger=placed,
        when="payload.order == 13",
        action=check,
        params={"order": "{{ payload.missing }}"},
    ),
)
EMPTY = Trigger("depot.empty", schema={"type": "object", "properties": {"pin": {"type": "string"}}})
UNUSED = Trigger("depot.unused", schema={"type": "object", "properties": {"order": {"type": "integer"}}})
PAIR = Rule(
    "depot.pair",
    action=check,
    params={"order": "{{ events[0].payload.order }}", "pin": "{{ payload.pin }}"},
    window=Window(sequence=[placed, EMPTY], within="1m"),
)
UNMET = Rule(
    "depot.empty",
    trigger=EMPTY,
    action=check,
    tenant="theirs",
    params={"order": 1, "pin": "{{ payload.pin }}"},
)
NIGHTLY = Schedule("depot.nightly", action=check, cron="0 2 * * *", params={"order": 7, "words": EVIL})
HOURLY = Schedule("depot.hourly", action=check, cron="0 * * * *", params={"order": 8})
GATE = Limit(2, ref="depot.gate", scope="depot.load")

ALL = (
    check,
    load,
    weigh,
    drive,
    ask,
    confirm,
    enter,
    pack_up,
    placed,
    EMPTY,
    UNUSED,
    TRUCK,
    TOUR,
    *RULES,
    UNMET,
    PAIR,
    NIGHTLY,
    HOURLY,
    GATE,
)


def wide(tasks: int) -> Any:
    """A workflow of so many tasks, ten at a time."""
    lines = ["workflow: depot.wide", "tasks:"]
    for n in range(tasks):
        needs = f", needs: [t{n - 10}]" if n >= 10 else ""
        lines.append(f"  t{n}: {{action: depot.weigh, input: {{parcel: {n}}}{needs}}}")
    return from_yaml("\n".join(lines))


DISABLED = """
update subscription set disabled_at = clock_timestamp(), disabled_because = 'its requests failed for a day', error = 'no answer'
"""
TRACED = """
update payload set origin = coalesce(origin, '{}') ||
    '{"trace": {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}'
where execution_id = $1 returning 1
"""


async def fill(house: Installation) -> dict[str, UUID]:
    """Let it all happen. Returns the ids of what is worth a look, by name."""
    client = house.client
    found = {
        "good": await client.start("depot.truck", {"order": 1}),
        "bad": await client.start("depot.truck", {"order": 2, "ok": False}),
        "evil": await client.start("depot.check", {"order": 3, "words": EVIL}, by=EVIL),
        "failed": await client.start("depot.drive", {"order": 4, "ok": False}),
        "asks": await client.start("depot.ask"),
        "tour": await client.start("depot.tour"),
        "wide": await client.start("depot.wide"),
        "sleeps": await client.start("depot.pack_up", {"parcels": 3}),
        "broke": await client.start("depot.pack_up", {"parcels": 2, "fail": True}),
    }
    found["event"] = await client.publish("depot.placed", {"order": 101, "note": EVIL}, source=EVIL[:100])
    await client.publish("depot.placed", {"order": 13, "note": EVIL})
    for name in ("good", "bad", "evil", "failed", "wide", "broke"):
        await _ended(client, found[name])
    await house.rows(TRACED, found["good"])
    await house.until("select 1 from inquiry where status = 'created' having count(*) >= 2")
    await house.until("select 1 from suspended where execution_id = $1", found["sleeps"])
    await house.until("select 1 from enforcement where error is not null")
    found["held"] = await client.start("depot.load", {"order": 5, "seconds": 600})
    await client.start("depot.load", {"order": 6, "seconds": 600})
    found["queued"] = await client.start("depot.load", {"order": 7})
    await house.until("select 1 from waiter where execution_id = $1", found["queued"])
    later = await client.start("depot.check", {"order": 9}, delay=600)
    await client.cancel(later, reason=EVIL)
    found["letter"] = await keep_letter(house)
    await _administer(house)
    return found | await save_views(house)


async def _administer(house: Installation) -> None:
    """Create a user, a token, a secret, a webhook and a subscription, which the pages of administrators show."""
    session = house.session
    await people.create(session, "grace", "a password of twelve letters", ["operator"], by="test")
    await access.create_token(session, "billing", ["viewer"], by="test")
    await secrets.put(session, "public", "db_password", f"{EVIL} of the database", by="test")
    signature: dict[str, Any] = {"signature": "github", "secret": "a secret of sixteen letters"}
    await webhooks.put(
        session, "parcels", trigger="depot.placed", payload={"order": 1}, **signature, by="test"
    )
    await subscriptions.put(session, "shop", url="https://example.org/hook", by="test")
    await house.rows(DISABLED)
    await house.client.holds.hold("pack", "harbour", by=EVIL, reason=f"an audit {EVIL}", force=True)
    await house.rows("update person set totp_since = clock_timestamp() where name = 'grace'")


async def save_views(house: Installation) -> dict[str, UUID]:
    """Save more shared views than the page shows side by side. Return the ids of one of them, and of one that is not valid."""
    grace = replace(access.ANYBODY, name="user:grace")
    filters = {"status": ["failed", "timeout"], "since": "7d", "action": "depot.drive"}
    for number in range(13):
        await saved_views.create(
            house.session, grace, f"Gate {number}", {"action": "depot.load"}, shared=True
        )
    late = await saved_views.create(
        house.session, grace, "<b>Late</b> trucks", filters, description="of this week & before", shared=True
    )
    stale = await saved_views.create(
        house.session, grace, "An older one", {"action": "depot.load"}, shared=True
    )
    await house.rows('update saved_view set filters = \'{"status": ["parked"]}\' where id = $1', stale.id)
    return {"view": late.id, "stale": stale.id}


async def _ended(client: Any, id: UUID) -> None:
    try:
        await client.result(id, timeout=30)
    except PenstockError:
        return


async def keep_letter(house: Installation) -> UUID:
    """Keep a dead letter, and return its id."""
    letters: Sequence[KeptLetter] = [
        KeptLetter(
            id=new_id(),
            queue="event.created",
            reason=f"there is no trigger {EVIL}",
            type=EVIL,
            message_id=EVIL,
            body=EVIL.encode(),
            headers='{"x-evil": "<script>window.hit=1</script>"}',
            fingerprint="depot",
            count=3,
            cut_from=None,
        )
    ]
    async with house.session.transaction() as tx:
        await dead_letters.keep(tx, letters)
    return letters[0].id
