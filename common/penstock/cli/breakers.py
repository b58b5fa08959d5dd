"""The commands `penstock breaker`, which show, open and close breakers."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from penstock.cli.arguments import parse_duration, parse_params
from penstock.cli.command_runner import ME
from penstock.cli.output import Json, json_line, listing, out
from penstock.cli.server import by_either, now, read

commands = typer.Typer(help="List, open and close breakers.", no_args_is_help=True)

Ref = Annotated[str, typer.Argument(help="The action with the breaker, such as shop.charge.")]
Parameters = Annotated[
    list[str] | None,
    typer.Argument(help="name=VALUE for each parameter or label (labels.KEY=VALUE) in the breaker's `by`."),
]


@commands.command("list")
def list_(json: Json = False) -> None:
    """List the breakers, open ones first, each with the number of executions that wait."""
    from penstock.operate.why.queued import group_text  # slow to import

    rows = read(lambda client: client.breakers.all())
    listing(
        ["breaker", "key", "state", "since", "failed", "opens at", "next probe", "by", "reason", "waiting"],
        rows,
        lambda row: (
            row.ref.removesuffix(".breaker"),
            group_text(row.group_value, row.by) or None,
            row.state,
            row.since,
            f"{row.failed} of {row.attempts}",
            f"{row.failures} of {row.of} in {row.within:g} s",
            None if row.probe_in is None else f"in {row.probe_in:.0f} s",
            row.by_whom,
            row.reason,
            row.waiting,
        ),
        json=json,
        empty="No breakers. Declare one with an action: breaker={'failures': 20, 'of': 50}",
    )


@commands.command("open")
def open_(
    ref: Ref,
    parameters: Parameters = None,
    reason: Annotated[
        str | None, typer.Option("--reason", help="The reason, stored with the breaker.")
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for",
            help="The time until a probe: 30m, 2h. By default there is no probe, and the breaker stays open "
            "until it is closed by hand.",
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="The author, stored with the breaker.")] = ME,
    json: Json = False,
) -> None:
    """Open a breaker by hand: executions of its actions wait, and keep their place in the queue. Running executions go on."""
    until = None if for_ is None else now() + timedelta(seconds=parse_duration("--for", for_))
    values = parse_params(parameters or [])
    by_either(lambda client: client.breakers.open(ref, values, by=by, reason=reason, until=until))
    if json:
        json_line({"ref": ref, "until": until})
    else:
        out.print(f"The breaker of {ref} is open. To close it: penstock breaker close {ref}", highlight=False)


@commands.command("close")
def close(
    ref: Ref,
    parameters: Parameters = None,
    at_once: Annotated[
        bool, typer.Option("--at-once", help="Release all waiting executions at once.")
    ] = False,
    json: Json = False,
) -> None:
    """Close a breaker. Waiting executions are released gradually, first in, first out."""
    values = parse_params(parameters or [])
    by_either(lambda client: client.breakers.close(ref, values, at_once=at_once))
    if json:
        json_line({"ref": ref, "at_once": at_once})
    else:
        out.print(f"The breaker of {ref} is {'closed' if at_once else 'releasing'}.", highlight=False)


def add_to(app: typer.Typer) -> None:
    app.add_typer(commands, name="breaker")
