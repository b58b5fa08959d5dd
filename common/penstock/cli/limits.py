"""The commands `penstock limit`, which show and change limits at run time."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer

from penstock.cli import name_completion
from penstock.cli.output import Json, json_line, listing, out
from penstock.cli.server import by_either, read
from penstock.store.admission.limits import TOTALS_HOURS, LimitInForce

commands = typer.Typer(help="List, set and remove limits.", no_args_is_help=True)

Ref = Annotated[
    str,
    typer.Argument(
        help="The limit, such as shop.database or shop.charge.all.", autocompletion=name_completion.limits
    ),
]


@commands.command("list")
def list_(json: Json = False) -> None:
    """List the limits in force, each with the numbers of executions that have a slot and that wait."""
    rows = read(lambda client: client.limits.all())
    listing(
        ["limit", "covers", "allows", "by", "when full", "running", "waiting", "set by"],
        rows,
        lambda row: (
            row.ref,
            row.scope,
            allows(row),
            row.by,
            _when_full(row),
            row.held,
            row.waiting,
            _set_by(row),
        ),
        json=json,
        document=_plain,
        empty="There are no limits. Create one with: penstock limit set shop.database 50 --scope shop",
    )


@commands.command("totals")
def totals(
    ref: Annotated[
        str | None, typer.Argument(help="Only this limit.", autocompletion=name_completion.limits)
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, max=TOTALS_HOURS, help="The period to count, up to a day.")
    ] = TOTALS_HOURS,
    json: Json = False,
) -> None:
    """Count the attempts that asked for a slot of each limit, got it, and gave it back."""
    rows = read(lambda client: client.limits.totals(ref, hours=hours))
    listing(
        ["limit", "enqueued", "admitted", "completed", "held", "waiting"],
        rows,
        lambda row: (row.ref, row.enqueued, row.admitted, row.completed, row.held, row.waiting),
        json=json,
        empty="No limits are in force.",
    )


@commands.command("set")
def set_(
    ref: Ref,
    max: Annotated[
        int | None, typer.Argument(min=1, help="The maximum number of executions that run at once.")
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(help="The scope: * for all actions, a pack, an action or a workflow. For a new limit."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            help="Parameters and labels (labels.KEY): each combination of their values is counted separately."
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="The maximum number of starts within a time: 100/min.")
    ] = None,
    burst: Annotated[
        int | None, typer.Option(help="The number of these starts that may come at once.")
    ] = None,
    when_full: Annotated[
        str | None, typer.Option(help="The reaction to a full limit: enqueue, cancel_new or cancel_running.")
    ] = None,
    max_waiting: Annotated[
        int | None, typer.Option(help="The maximum number of executions that wait.")
    ] = None,
    fair: Annotated[
        list[str] | None,
        typer.Option(help="A parameter or label: executions with different values of it take turns."),
    ] = None,
    while_waiting: Annotated[
        str | None,
        typer.Option(
            help="release or keep: an execution that waits for an answer releases or keeps its slot."
        ),
    ] = None,
    cost: Annotated[
        str | None, typer.Option(help="The cost of an execution: 2, or '{{ parameters.tokens }}'.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="The unit of the cost, such as tokens.")] = None,
    unset: Annotated[list[str] | None, typer.Option(help="An option to remove, such as rate or max.")] = None,
    json: Json = False,
) -> None:
    """Change a limit, or create one. The change is in force at once. It overrides applied definitions until `penstock limit
    rm`."""
    options = {
        "max": max, "scope": scope, "by": by or None, "rate": rate, "burst": burst, "when_full": when_full,
        "max_waiting": max_waiting, "fair": fair or None, "while_waiting": while_waiting, "cost": cost, "unit": unit,
    }  # fmt: skip
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    changes |= {name.replace("-", "_"): None for name in unset or ()}
    row = by_either(lambda client: client.limits.set(ref, **changes))
    if json:
        json_line(_plain(row))
        return
    out.print(f"Limit {ref} allows {allows(row)}, for {row.scope}.", highlight=False)
    if row.declared:
        out.print(
            f"[dim]The applied definitions have other values. To use those again: penstock limit rm {ref}[/dim]"
        )
    if not row.covers:
        out.print(f"[dim]No execution that {row.scope} covers was ever started: check the scope.[/dim]")


@commands.command("rm")
def rm(ref: Ref, json: Json = False) -> None:
    """Undo the manual change of a limit, so that the declared one is in force again. If there is
    no manual change, this removes the declared limit until a definition of it is applied again."""
    row = by_either(lambda client: client.limits.remove(ref))
    if json:
        json_line({"ref": ref, "in_force": None if row is None else _plain(row)})
    elif row is None:
        out.print(f"Limit {ref} is removed. If a definition declares it, the next apply creates it again.")
    else:
        out.print(f"The declared limit {ref} is in force again: it allows {allows(row)}.", highlight=False)


def allows(row: LimitInForce) -> str:
    """Return the text of a limit's bounds: `5 at once, 100 in 60 s`, or `90,000 tokens in 60 s`."""
    if row.budget:
        return f"the budget of {row.unit} of each execution tree"
    if row.breaker:
        numbers = orjson.loads(row.breaker)
        return f"a breaker, {numbers['failures']} of {numbers['of']} in {numbers['within']:g} s"
    unit = f" {row.unit}" if row.unit else ""
    parts = [f"{row.max:,}{unit} at once"] if row.max else []
    if row.rate_count:
        parts.append(f"{row.rate_count:,}{unit} in {row.rate_seconds:g} s")
    return ", ".join(parts)


def _when_full(row: LimitInForce) -> str:
    if row.when_full == "enqueue" and row.max_waiting is not None:
        return f"enqueue, {row.max_waiting} at most"
    return row.when_full.replace("_", " ")


def _set_by(row: LimitInForce) -> str:
    if not row.by_hand:
        return "definitions"
    return "hand, not as declared" if row.declared else "hand"


def _plain(row: LimitInForce) -> dict[str, Any]:
    return {
        **asdict(row),
        "breaker": orjson.loads(row.breaker) if row.breaker else None,
        "declared": orjson.loads(row.declared) if row.declared else None,
    }


def add_to(app: typer.Typer) -> None:
    app.add_typer(commands, name="limit")
