"""The commands that change schedules: enable, disable, pause, delete, run, backfill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from penstock.cli import schedule_definition, schedule_views
from penstock.cli.arguments import parse_duration, parse_instant
from penstock.cli.command_runner import with_client
from penstock.cli.output import Json, json_line, out, table
from penstock.cli.schedule_views import Ref, shown
from penstock.cli.server import by_either, now
from penstock.client.client import Client
from penstock.client.schedules import Schedules
from penstock.language.schedules import find_zone
from penstock.store.schedules.backfill import BackfillFire
from penstock.store.schedules.reading import Fire, ScheduleState, ScheduleSummary

if TYPE_CHECKING:
    from penstock.client.http_subjects import HttpSchedules

    AnySchedules = Schedules | HttpSchedules

app = typer.Typer(help="Create, list, preview, change, run and backfill schedules.", no_args_is_help=True)


def _with_schedules(work: Callable[[Schedules], Awaitable[Any]]) -> Any:
    async def start(client: Client) -> Any:
        return await work(client.schedules)

    return with_client(start)


def _changed(
    work: Callable[[AnySchedules], Awaitable[ScheduleState | ScheduleSummary]], state: str, json: bool
) -> None:
    row = shown(by_either(lambda client: work(client.schedules)))
    if json:
        json_line(row)
        return
    due = f" It fires next at {row['next']}." if row["next"] else ""
    out.print(f"Schedule {row['ref']} is {state}.{due}")


@app.command()
def enable(ref: Ref, json: Json = False) -> None:
    """Enable a schedule. It fires from now on."""
    _changed(lambda schedules: schedules.enable(ref), "enabled", json)


@app.command()
def disable(ref: Ref, json: Json = False) -> None:
    """Disable a schedule. It does not fire until it is enabled again."""
    _changed(lambda schedules: schedules.disable(ref), "disabled", json)


@app.command()
def pause(
    ref: Ref,
    for_: Annotated[str, typer.Option("--for", help='The duration of the pause, such as "2h" or "30m".')],
    json: Json = False,
) -> None:
    """Pause a schedule for a time. After that it fires again by itself."""
    seconds = parse_duration("--for", for_)
    _changed(lambda schedules: schedules.pause(ref, seconds), f"paused for {for_}", json)


@app.command()
def delete(ref: Ref, json: Json = False) -> None:
    """Delete a schedule. Its running executions continue, and ended ones stay in the lists."""
    _with_schedules(lambda schedules: schedules.delete(ref))
    if json:
        json_line({"ref": ref, "deleted": True})
    else:
        out.print(f"Schedule {ref} is deleted. To create it again, apply the file that declares it.")


@app.command()
def run(ref: Ref, json: Json = False) -> None:
    """Fire a schedule now, enabled or not, under its overlap policy."""
    fire: Fire = _with_schedules(lambda schedules: schedules.run(ref))
    if json:
        json_line(fire)
    elif fire.execution_id:
        out.print(
            f"Execution {fire.execution_id} is {fire.status}. See it with: penstock show {fire.execution_id}"
        )
    else:
        out.print(f"No execution was started. The fire is {fire.status}: {fire.error}")


@app.command()
def backfill(
    ref: Ref,
    first: Annotated[
        str,
        typer.Option(
            "--from", help="The first instant in ISO 8601; without an offset, in the schedule's zone."
        ),
    ],
    last: Annotated[
        str | None,
        typer.Option("--to", help="The last instant. Both instants are included. Default: now."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be started.")] = False,
    json: Json = False,
) -> None:
    """Start the missing executions of a past range, one for each fire. A repeated call starts nothing twice."""
    ends_now = now() if last is None else None

    async def work(schedules: Schedules) -> list[BackfillFire]:
        zone = (orjson.loads((await schedules.get(ref)).body)).get("timezone") or "UTC"
        until = ends_now or parse_instant("--to", last or "", find_zone(zone))
        return await schedules.backfill(
            ref, parse_instant("--from", first, find_zone(zone)), until, dry_run=dry_run
        )

    fires: list[BackfillFire] = _with_schedules(work)
    if json:
        for fire in fires:
            json_line({"due": fire.due, "was": fire.status, "starts": fire.starts, "dry_run": dry_run})
        return
    if dry_run:
        rows = [(fire.due, fire.status or "", "would start" if fire.starts else "stays") for fire in fires]
        table(["due", "is", ""], rows, empty="No start is due in this range.")
        return
    counts = Counter(fire.starts for fire in fires)
    out.print(f"{counts[True]} fires were started, and {counts[False]} had been started before.")
    if counts[True]:
        out.print(f"See them with: penstock schedule history {ref}")


# Added here once, since a process may build the command line several times.
schedule_views.add_to(app)
schedule_definition.add_to(app)


def add_to(parent: typer.Typer) -> None:
    parent.add_typer(app, name="schedule")
