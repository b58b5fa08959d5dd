"""The commands about events: publish, events, and `show`, which takes an event or an execution."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import orjson
import typer

from penstock.cli import execution_filter as of
from penstock.cli import name_completion
from penstock.cli.arguments import parse_id, parse_params
from penstock.cli.chain_options import MaxDepth, MaxDescendants
from penstock.cli.command_runner import with_session
from penstock.cli.executions import print_execution
from penstock.cli.output import Json, age, err, fields, json_line, out, table
from penstock.cli.server import by_either, read
from penstock.cli.text_values import schema_of, send_as_typed
from penstock.errors import NotFound
from penstock.language.terms.outside_names import check_tenant
from penstock.operate import event_rules
from penstock.operate.executions import plain
from penstock.store.events.event_list import EventFilter

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient

SHOWN = 80
"""The maximum length of a payload in a list, in characters."""


def publish(
    trigger: Annotated[
        str,
        typer.Argument(
            help="The trigger, such as shop.order_placed.", autocompletion=name_completion.triggers
        ),
    ],
    payload: Annotated[
        list[str] | None,
        typer.Argument(
            help="name=value, or @FILE.json. A value is read as JSON if it is JSON and the schema does not require text."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The idempotency key: the same key gives the same event.")
    ] = None,
    tenant: Annotated[str, typer.Option(help="The tenant of the event.")] = "public",
    max_depth: MaxDepth = None,
    max_descendants: MaxDescendants = None,
    json: Json = False,
) -> None:
    """Publish an event."""
    body = parse_params(payload or [])

    async def work(client: AnyClient) -> UUID:
        async def send(values: dict[str, Any]) -> UUID:
            return await client.publish(
                trigger,
                values,
                key=key,
                tenant=tenant,
                max_depth=max_depth,
                max_descendants=max_descendants,
            )

        return await send_as_typed(
            send, body, payload or [], lambda: schema_of(client, ("trigger",), trigger)
        )

    id = by_either(work)
    if json:
        json_line({"id": id})
    else:
        out.print(f"Event {id} is stored. See its outcome with: penstock show {id}")


def events(
    trigger: Annotated[
        str | None, typer.Option(help="Only events of this trigger.", autocompletion=name_completion.triggers)
    ] = None,
    tenant: of.EventTenant = None,
    source: Annotated[str | None, typer.Option(help="Only events from this source.")] = None,
    since: of.EventSince = None,
    until: of.EventUntil = None,
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--payload", "-p", help="Only events with this value in the payload: name=value. May be repeated."
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Only events published with this idempotency key.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 20,
    before: Annotated[
        UUID | None,
        typer.Option(parser=parse_id, help="List only events that are older than the one with this id."),
    ] = None,
    json: Json = False,
) -> None:
    """List the newest events, each with its outcome: rules that matched or failed, and executions that the event continued or
    failed."""
    event_filter = EventFilter(
        trigger=trigger,
        tenant=None if tenant is None else check_tenant(tenant),
        source=source,
        since=of.instant("--since", since),
        until=of.instant("--until", until),
        payload=parse_params(param) if param else None,
        key=key,
    )

    rows = with_session(lambda session: event_rules.listed(session, event_filter, before=before, limit=limit))
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["id", "age", "trigger", "source", "outcome", "payload"],
        [
            (
                r.id,
                age(r.created_at),
                r.trigger,
                r.source,
                event_rules.outcome_of(r),
                _short(r.payload),
            )
            for r in rows
        ],
        empty="There are none.",
    )
    if len(rows) == limit:
        err.print(f"[dim]There may be more: --before {rows[-1].id}[/dim]")


def _short(payload: Any) -> str:
    text = orjson.dumps(payload).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def show(
    id: Annotated[
        UUID,
        typer.Argument(
            parser=parse_id, help="An execution or an event.", autocompletion=name_completion.executions
        ),
    ],
    dot: Annotated[
        bool, typer.Option("--dot", help="For a workflow: print its tasks' statuses as a Graphviz drawing.")
    ] = False,
    mermaid: Annotated[
        bool,
        typer.Option("--mermaid", help="For a workflow: print its tasks' statuses as a Mermaid drawing."),
    ] = False,
    json: Json = False,
) -> None:
    """Show everything about an execution, with the tree of its tasks if it is a workflow. Or show an event, with the
    rules that matched, and why the others did not."""

    if dot or mermaid:
        out.print(read(lambda client: client.drawing(id, "dot" if dot else "mermaid")), markup=False)
        return

    async def work(client: AnyClient) -> dict[str, Any]:
        with contextlib.suppress(NotFound):
            return await client.described(id)
        with contextlib.suppress(NotFound):
            return await client.event(id)
        raise NotFound(
            f"no execution and no event {id}", hint="See the newest executions: `penstock executions`."
        )

    record = read(work)
    if json:
        json_line(record if "trigger" in record else plain(record))
    elif "trigger" in record:
        verdicts = record["rules"]
        details = {
            name: value for name, value in record.items() if name not in ("payload", "rules", "continued")
        }
        # In the ordinary case no workflow waits for the event, and the line is left out.
        details["awaited"] = record["awaited"] or None
        names = {"id": "event", "published_by": "published by"}
        fields({names.get(name, name): value for name, value in details.items()})
        out.print("[dim]payload[/dim]")
        out.print_json(orjson.dumps(record["payload"]).decode())
        out.print()
        if record["continued"]:
            table(
                ["ended the wait of", "action", "step", "status"],
                [
                    (run["run"] or run["id"], run["action"], run["task"], run["status"])
                    for run in record["continued"]
                ],
            )
            out.print()
        table(
            ["rule", "verdict", "reason", "execution"],
            [(v["rule"], v["verdict"], v["error"] or v["why"], v["execution"]) for v in verdicts],
            empty="No rule has this trigger.",
        )
    else:
        print_execution(record)


def add_to(app: typer.Typer) -> None:
    app.command()(publish)
    app.command()(events)
    app.command()(show)
