"""The commands `penstock rules errors` and `rerun`, about rules that failed on events."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_id
from penstock.cli.command_runner import with_client, with_session
from penstock.cli.output import Json, age, json_line, out, table
from penstock.client import rule_errors
from penstock.client.client import Client
from penstock.client.rule_errors import RerunRule
from penstock.errors import InvalidInput

Rule = Annotated[
    str | None,
    typer.Argument(
        help="Only errors of this rule, such as shop.charge_big.", autocompletion=name_completion.rules
    ),
]


def errors(
    rule: Rule = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 50,
    json: Json = False,
) -> None:
    """List the events on which rules failed, newest first, with the reason."""
    rows = with_session(lambda session: rule_errors.newest(session, rule=rule, limit=limit))
    if json:
        for row in rows:
            json_line(row)
        return
    table(
        ["event", "age", "rule", "rule now", "error"],
        [
            (
                row.event_id,
                age(row.at),
                row.rule,
                "gone" if row.gone else "changed" if row.changed else "",
                row.error,
            )
            for row in rows
        ],
        empty="No rule has failed on an event.",
    )
    if rows:
        out.print("[dim]Correct the rules and apply them, then run: penstock rules rerun RULE[/dim]")


def rerun(
    rule: Rule = None,
    event: Annotated[UUID | None, typer.Option(parser=parse_id, help="Only errors on this event.")] = None,
    every: Annotated[bool, typer.Option("--all", help="The errors of all rules.")] = False,
    json: Json = False,
) -> None:
    """Evaluate a rule again for the events on which it failed. Exit code 1 if it fails again for any of them."""
    if not (rule or event or every):
        raise InvalidInput("nothing is selected", hint="Give a rule, or --event ID, or --all.")

    async def work(client: Client) -> list[RerunRule]:
        return [result async for result in rule_errors.rerun(client, rule=rule, event=event)]

    done = with_client(work)
    if json:
        for result in done:
            json_line(result)
    else:
        table(
            ["event", "rule", "", "execution", "reason"],
            [
                (result.event_id, result.rule, result.what, result.execution_id, result.error)
                for result in done
            ],
            empty="There is no failed evaluation to repeat.",
        )
    if any(result.what in ("failed", "left") for result in done):
        raise typer.Exit(1)


def add_to(rules: typer.Typer) -> None:
    rules.command()(errors)
    rules.command()(rerun)
