"""The commands `penstock subscriptions`: programs that are called when executions change status."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from penstock.cli.arguments import label_option
from penstock.cli.command_runner import ME, with_session
from penstock.cli.output import Json, err, json_line, listing, out
from penstock.operate import subscriptions as operate
from penstock.store.access import subscriptions as store
from penstock.store.access.subscriptions import Subscription

subscriptions = typer.Typer(
    help="List, set, enable and remove subscriptions: programs that are called when executions change status.",
    no_args_is_help=True,
)

Name = Annotated[str, typer.Argument(help="The name of the subscription.")]


@subscriptions.command("set")
def set_(
    name: Name,
    url: Annotated[str, typer.Argument(help="The URL to call: https://example.org/hook")],
    status: Annotated[
        list[str] | None, typer.Option(help="A status to report; by default all final ones.")
    ] = None,
    tenant: Annotated[str | None, typer.Option(help="Only executions of this tenant.")] = None,
    action: Annotated[
        str | None, typer.Option(help="Only executions of these actions, such as 'shop.*'.")
    ] = None,
    workflow: Annotated[
        str | None,
        typer.Option(help="Only executions of this workflow. With --tasks, also executions of its tasks."),
    ] = None,
    tasks: Annotated[bool, typer.Option("--tasks", help="Include the tasks of workflows.")] = False,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="Only executions with this label: KEY=VALUE. With several labels, an execution must have all of them."
        ),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            envvar="SUBSCRIPTION_SECRET",
            help="The secret that signs the calls. By default one is created and printed.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Create a subscription, or change it. Changing a disabled subscription enables it."""
    labels = label_option(label)
    subscription, fresh = with_session(
        lambda session: operate.put(
            session,
            name,
            url=url,
            statuses=status or (),
            tenant=tenant,
            action=action,
            workflow=workflow,
            tasks=tasks,
            labels=labels,
            secret=secret,
            by=ME,
        )
    )
    if json:
        json_line({**asdict(subscription), "secret": fresh})
        return
    if fresh is not None:
        err.print("[dim]Calls are signed with this secret, which is shown once:[/dim]")
        out.print(fresh)
    err.print(f"{subscription.url} is called when an execution becomes {', '.join(subscription.statuses)}.")


@subscriptions.command("list")
def list_(json: Json = False) -> None:
    """List subscriptions, with the state of their calls."""
    rows = with_session(store.listed)
    listing(
        ["name", "address", "reports", "filter", "waiting", "dropped", "last delivered", "status"],
        rows,
        lambda r: (r.name, r.url, r.statuses, _of(r), r.waiting, r.dropped, r.delivered_at, _state(r)),
        json=json,
        empty="There are no subscriptions. Create one with: penstock subscriptions set NAME URL",
    )


@subscriptions.command()
def enable(name: Name, json: Json = False) -> None:
    """Enable a disabled subscription. Changes in the meantime are not delivered."""
    subscription = with_session(lambda session: operate.enable(session, name))
    if json:
        json_line(asdict(subscription))
    else:
        out.print(f"Subscription {name} is enabled.")


@subscriptions.command()
def rm(name: Name, json: Json = False) -> None:
    """Remove a subscription, with its calls that were not made yet."""
    with_session(lambda session: operate.remove(session, name))
    if json:
        json_line({"removed": name})
    else:
        out.print(f"Subscription {name} is removed.")


def _of(row: Subscription) -> str:
    parts = {"tenant": row.tenant, "action": row.action, "workflow": row.workflow}
    filters = [f"{name} {value}" for name, value in parts.items() if value]
    return ", ".join([*filters, *(f"{key}={value}" for key, value in row.labels.items())]) or "all"


def _state(row: Subscription) -> str:
    if row.disabled_at is not None:
        return f"disabled: {row.disabled_because}"
    return f"fails: {row.error}" if row.failing_since is not None else "ok"


def add_to(app: typer.Typer) -> None:
    app.add_typer(subscriptions, name="subscriptions")
