"""A5, A7 to A9: what is there only once, however often it is asked for."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from typing import Any
from uuid import UUID

from tests.parity.host import Host


async def a05_workflow_start_is_idempotent(host: Host) -> str:
    """Workflow start idempotent, one state row per execution."""
    site, client = await host.shared(), (await host.shared()).client
    starts = await asyncio.gather(
        *(client.start("flow.fan", {"items": [1, 2]}, key="a05") for _ in range(20))
    )
    [id] = set(starts)
    await site.amqp.envelopes("execution.requested", [id], queue="execution.requested")
    await site.amqp.envelopes("workflow.started", [id], queue="workflow.started")
    assert await site.ends(id) == ["completed"]
    await site.amqp.envelopes("workflow.started", [id], queue="workflow.started")
    await site.until(partial(site.amqp.empty, "workflow.started"), "the copies to be acknowledged")
    rows = await site.value("select count(*) from workflow where execution_id = $1", id)
    children = await site.value("select count(*) from execution where parent = $1", id)
    assert (rows, children) == (1, 3), f"{rows} state rows and {children} children"
    error = await site.refused("insert into workflow select * from workflow where execution_id = $1", id)
    return (
        "20 starts with one key and copies of both messages: one execution, one state row, three children; a "
        f"second row: {error}"
    )


async def a07_children_are_deduplicated(host: Host) -> str:
    """Child dispatch deduped on (workflow, task, item index)."""
    site, client = await host.shared(), (await host.shared()).client
    id = await client.start("flow.fan", {"items": [5, 5, 5]})
    await site.amqp.envelopes("workflow.started", [id], queue="workflow.started", copies=10)
    assert await site.ends(id) == ["completed"]
    rows = await site.sql("select task, item from execution where parent = $1 order by 1, 2", id)
    assert [row["item"] for row in rows if row["item"] >= 0] == [0, 1, 2], f"items: {rows}"
    error = await site.refused(
        "insert into execution (id, status, namespace_id, definition_id, parent, task, item) "
        "select gen_random_uuid(), 'requested', namespace_id, definition_id, parent, task, item from execution where parent = $1",
        id,
    )
    assert error == "UniqueViolationError", f"PostgreSQL refused a second child with {error}"
    return f"ten copies of the start: items 0, 1, 2 once each; a second child of the same (workflow, task, item): {error}"


async def a08_created_once(host: Host) -> str:
    """Enforcement unique on (rule, event); one execution per enforcement; one inquiry per execution; events deduped."""
    site, client = await host.shared(), (await host.shared()).client
    keyed = {await client.publish("flow.ticked", {"n": 1}, key="a08") for _ in range(5)}
    await site.amqp.events("flow.ticked", [{"n": 3}] * 5, ["a08-m"] * 5, app_id="a08")
    foreign = await site.until(partial(site.executions_of, "a08", 2), "two rules to match a foreign event")
    [event] = keyed
    await site.amqp.envelopes("event.created", [event], queue="event.created", copies=5)
    rows = await site.until(
        lambda: site.sql("select rule, execution_id from enforcement where event_id = $1", event),
        "enforcements",
    )
    await site.ends(*(row["execution_id"] for row in rows))
    await site.until(partial(site.amqp.empty, "event.created"), "the copies to be acknowledged")
    assert len(rows) == 2, f"{len(rows)} enforcements of two rules"
    ran = await site.value(
        "select count(*) from execution where id = any($1)", [r["execution_id"] for r in rows]
    )
    assert (ran, len(set(foreign))) == (2, 2)
    events = await site.value("select count(*) from event where source = 'a08'")
    assert events == 1, f"one message id made {events} events"
    await client.start("flow.ask", {"question": "a08"}, key="a08-ask")
    inquiry = await client.start("flow.ask", {"question": "a08"}, key="a08-ask")
    await site.comes_to(inquiry, "waiting")
    errors = {
        await site.refused("insert into enforcement select * from enforcement where event_id = $1", event),
        await site.refused("insert into inquiry select * from inquiry where execution_id = $1", inquiry),
    }
    assert errors == {"UniqueViolationError"}, f"PostgreSQL said {errors}"
    await client.answer(inquiry, True, by="row")
    return (
        "5 x one key, 5 x one message id, 5 copies of each message: one event, one enforcement a rule, one "
        "execution each; a second enforcement or inquiry: UniqueViolation"
    )


async def a09_handlers_are_idempotent(host: Host) -> str:
    """Handlers for each message, all idempotent; `inquiry.created` published once; status changes can be subscribed to."""
    site = await host.shared()
    client = site.client
    await site.amqp.bind("penstock.status", "a09", "#")
    inquiry = await client.start("flow.ask", {"question": "a09?"})
    await site.comes_to(inquiry, "waiting")
    silent = await client.start("flow.echo", {"n": 9})
    await site.ends(silent)
    for queue in ("event.created", "execution.requested", "execution.completed", "workflow.started"):
        await site.amqp.envelopes(queue, [inquiry, silent], queue=queue)
    heard: list[tuple[str, Any]] = []

    async def hear(key: str, id: UUID) -> bool:
        heard.extend(await site.amqp.take("a09"))
        return any(at == key and str(id) in document["ids"] for at, document in heard)

    await site.until(lambda: hear("inquiry.created", inquiry), "inquiry.created to be announced")
    answers = await asyncio.gather(
        *(client.answer(inquiry, yes, by="row") for yes in (True, False, True)), return_exceptions=True
    )
    accepted = [answer for answer in answers if answer is None]
    assert len(accepted) == 1, f"{len(accepted)} of three answers at once were taken"
    assert await site.ends(inquiry) == ["completed"]
    await site.command("announce", "completed", "running")
    echo = await client.start("flow.echo", {"n": 10})
    await site.until(
        lambda: hear("execution.status.completed", echo), "execution.status.completed to be announced"
    )
    await site.command("announce", "--off")
    keys = Counter(key for key, document in heard if str(inquiry) in document["ids"])
    assert keys["inquiry.created"] == 1, f"inquiry.created came {keys['inquiry.created']} times"
    early = [key for key, document in heard if str(silent) in document["ids"]]
    assert not early, f"{early} was announced before anybody asked for it"
    moves = await site.moves(silent)
    assert len(moves) == len(set(moves)), f"copies moved it again: {moves}"
    return (
        "copies on each queue moved nothing; inquiry.created once; one of three answers at once counts; "
        "execution.status.* only when asked for"
    )


# -- helpers: start work, and read its state ----------------------------------------
