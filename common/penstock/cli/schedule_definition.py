"""The commands that declare schedules: create, update."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_params
from penstock.cli.command_runner import with_client
from penstock.cli.output import Json, json_line, out
from penstock.cli.schedule_views import Ref, shown
from penstock.client.client import Client
from penstock.operate.apply import Change
from penstock.store.schedules.reading import ScheduleState

MISSED = ("grace", "delay", "catch_up", "at_most", "spread")
DURATION = 'Such as "30s" or "5m".'

Text = str | None
Words = list[str] | None


def _declare(
    context: typer.Context,
    ref: Ref,
    action: Annotated[
        Text,
        typer.Option(help="The action or workflow that it starts.", autocompletion=name_completion.actions),
    ] = None,
    cron: Annotated[
        Text, typer.Option(help="Five fields, six with seconds first, or a word: '0 2 * * *'.")
    ] = None,
    every: Annotated[Text, typer.Option(help="The time from one fire to the next: 90s.")] = None,
    at: Annotated[Text, typer.Option(help="The instant of the only fire: 2030-01-31T09:00.")] = None,
    rrule: Annotated[Text, typer.Option(help="The recurrence rule (RFC 5545): DTSTART:... RRULE:...")] = None,
    timezone: Annotated[Text, typer.Option(help="The IANA time zone.  [default: UTC]")] = None,
    param: Annotated[
        Words, typer.Option("--param", "-p", help="A parameter as name=value. May be repeated.")
    ] = None,
    run_context: Annotated[
        Words, typer.Option("--context", "-c", help="A value for the runs' context as name=value.")
    ] = None,
    overlap: Annotated[Text, typer.Option(help="The overlap policy: allow, skip, queue or replace.")] = None,
    missed: Annotated[Text, typer.Option(help="The policy for missed fires: execute, skip or delay.")] = None,
    grace: Annotated[
        Text, typer.Option(help=f"The maximum delay of a fire. A later fire counts as missed. {DURATION}")
    ] = None,
    delay: Annotated[Text, typer.Option(help="The delay of missed fires, with --missed delay.")] = None,
    catch_up: Annotated[Text, typer.Option(help="The missed fires that run: one or all.")] = None,
    at_most: Annotated[
        int | None, typer.Option(help="The maximum number of missed fires, with --catch-up all.")
    ] = None,
    spread: Annotated[Text, typer.Option(help="The time over which missed fires are spread.")] = None,
    jitter: Annotated[Text, typer.Option(help=f"The maximum random delay of a fire. {DURATION}")] = None,
    starts_at: Annotated[
        Text, typer.Option(help="The schedule does not fire before this instant: 2030-01-31T09:00+01:00.")
    ] = None,
    ends_at: Annotated[Text, typer.Option(help="The schedule does not fire after this instant.")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="The maximum number of attempts of a run.")] = None,
    priority: Annotated[
        int | None, typer.Option(help="The priority of the runs: higher goes first, and 0 is the default.")
    ] = None,
    expires: Annotated[
        Text, typer.Option(help=f"The time after which a run that has not begun ends. {DURATION}")
    ] = None,
    tenant: Annotated[Text, typer.Option(help="The tenant of the runs.  [default: public]")] = None,
    description: Annotated[Text, typer.Option(help="A description for people.")] = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Create it disabled.")] = False,
    json: Json = False,
) -> None:
    definition: dict[str, Any] = {
        "action": action, "cron": cron, "every": every, "at": at, "rrule": rrule, "timezone": timezone,
        "params": parse_params(param) if param else None, "context": parse_params(run_context) if run_context else None,
        "overlap": overlap, "jitter": jitter, "starts_at": starts_at, "ends_at": ends_at, "tenant": tenant,
        "description": description, "enabled": False if disabled else None,
        "retry": {"max_attempts": max_attempts} if max_attempts is not None else None, "priority": priority, "expires": expires,
    }  # fmt: skip
    late = dict(zip(MISSED, (grace, delay, catch_up, at_most, spread), strict=True))
    late["policy"] = missed
    definition["missed"] = {name: value for name, value in late.items() if value is not None} or None
    definition = {name: value for name, value in definition.items() if value is not None}

    async def work(client: Client) -> tuple[Change, ScheduleState]:
        declare = client.schedules.create if context.info_name == "create" else client.schedules.update
        return await declare(ref, definition), await client.schedules.get(ref)

    change, row = with_client(work)
    if json:
        json_line({**shown(row), "what": change.what})
        return
    due = f" It fires next at {shown(row)['next']}." if row.next_due else ""
    out.print(f"Schedule {ref} is {change.what}.{due}", markup=False)


def add_to(app: typer.Typer) -> None:
    app.command("create", help="Create a schedule for a registered action or workflow.")(_declare)
    app.command("update", help="Change some options of a schedule. The others stay.")(_declare)
