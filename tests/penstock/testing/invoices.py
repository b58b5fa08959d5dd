"""Actions that publish, start, run and are called back, as the how-tos show them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from penstock import DurableContext, Rule, Trigger, action, current, later, workflow

paid = Trigger("invoices.paid", schema={"invoice": {"type": "integer", "required": True}})
ADDRESSES: list[str] = []
CALLS: list[str] = []


@action(pack="invoices")
async def receipt(invoice: int) -> str:
    return f"receipt of {invoice}"


@action(pack="invoices")
def book(invoice: int) -> str:
    return f"booked {invoice}"


booked = Rule("invoices.booked", trigger=paid, action=book, params={"invoice": "{{ payload.invoice }}"})


@action(pack="invoices")
async def collect(invoice: int, transactional: bool = False, fails: bool = False) -> str:
    run = current()
    await run.publish("invoices.paid", {"invoice": invoice}, transactional=transactional)  # type: ignore[call-overload]
    await run.start(receipt, {"invoice": invoice}, key=f"receipt-{invoice}")
    if fails:
        raise OSError("down")
    return "collected"


@action(pack="invoices")
def collect_plain(invoice: int) -> Any:
    current().sync.publish(paid.ref, {"invoice": invoice})
    return current().sync.run(receipt, {"invoice": invoice}, timeout=60)


@action(pack="invoices")
async def waits(invoice: int, timeout: str | None = None) -> Any:
    return await current().run("invoices.slow", {"invoice": invoice}, timeout=timeout)


@action(pack="invoices")
async def slow(invoice: int) -> str:
    return f"slowly {invoice}"


@action(pack="invoices")
async def burst(words: list[str], keep: str = "last") -> list[str]:
    return [
        str(
            await current().start("invoices.note", {"word": word}, debounce="5s", debounce_key="n", keep=keep)
        )
        for word in words
    ]


@action(pack="invoices")
async def note(word: str) -> str:
    return word


@action(pack="invoices", retry={"max_attempts": 2, "initial_delay": 10, "jitter": 0})
async def build(ref: str) -> Any:
    ADDRESSES.append(await current().callback())
    return later(f"ci:{ref}", timeout="2d", heartbeat="1h")


@action(pack="invoices")
async def hands_over(id: str, timeout: str | None = None) -> Any:
    return later(id, timeout=timeout)


@workflow(pack="invoices")
def built_twice(ref: str) -> Any:
    return [build(ref=ref), build(ref=ref)]


async def send(invoice: int, key: str | None) -> str:
    CALLS.append("send")
    run = current()
    await run.publish("invoices.paid", {"invoice": invoice}, key=key)
    await run.start(receipt, {"invoice": invoice}, key=key)
    run.log(f"sent {invoice}")
    return str(await run.run("invoices.receipt", {"invoice": invoice}))


@action(pack="invoices")
async def settle(ctx: DurableContext, invoice: int) -> Any:
    sent = await ctx.step("send", send, invoice, f"i-{invoice}")
    await ctx.sleep("1d")
    return sent


@action(pack="invoices")
async def starts_in_body(ctx: DurableContext) -> Any:
    return await current().start(receipt, {"invoice": 1})


@action(pack="invoices")
async def awaits_payment(ctx: DurableContext) -> Any:
    return await ctx.signal("paid", timeout="30d")


@action(pack="invoices")
async def tell_paid(run: str, transactional: bool = False, fails: bool = False) -> Any:
    sent = await current().signal(UUID(run), "paid", "card", transactional=transactional)  # type: ignore[call-overload]
    if fails:
        raise OSError("down")
    return None if sent is None else sent.is_awaited


@action(pack="invoices")
async def starts_and_tells(key: str) -> Any:
    id = await current().start(awaits_payment, key="invoice-7")
    sent = await current().signal(key=key, name="paid", value="card")
    return sent.execution_id == id


async def _tell(run: UUID) -> None:
    await current().signal(run, "paid", "card")


@action(pack="invoices")
async def tells_itself(ctx: DurableContext) -> Any:
    await ctx.step("tell", _tell, current().execution_id)
    return await ctx.signal("paid")


async def _tell_invoice() -> Any:
    started = await current().start(awaits_payment, key="invoice-7")
    sent = await current().signal(key="invoice-7", name="paid", value="card")
    return sent.execution_id == started


@action(pack="invoices")
async def tells_invoice(ctx: DurableContext) -> Any:
    return await ctx.step("tell", _tell_invoice)


@action(pack="invoices")
async def misspelt(trigger: str, payload: dict[str, Any]) -> None:
    await current().publish(trigger, payload)


async def send_with_the_end() -> None:
    await current().publish("invoices.paid", {"invoice": 1}, transactional=True)


@action(pack="invoices")
async def settle_transactional(ctx: DurableContext) -> None:
    await ctx.step("send", send_with_the_end)
