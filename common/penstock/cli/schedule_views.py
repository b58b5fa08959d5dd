"""The commands that show schedules: list, show, preview, missed, history, stats, health."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import orjson
import typer

from penstock.cli import name_completion
from penstock.cli.arguments import parse_duration, parse_instant
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, err, json_line, listing, out, table
from penstock.cli.server import read
from penstock.client.schedules import upcoming
from penstock.errors import InvalidInput
from penstock.language.schedules import Preview, Spec, find_zone
from penstock.language.schedules.compiled_schedule import CompiledSchedule, compile_schedule
from penstock.language.schedules.fire_plan import FirePolicy, PlannedFire
from penstock.operate.masking import Masking
from penstock.operate.why.answer import span
from penstock.store.schedules import changes, health, reading
from penstock.store.schedules.reading import Fire, FireStats, ScheduleState, ScheduleSummary
from penstock.store.session.database import Session

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient

LABELS = {"since": "fired up to"}
"""The labels of fields with names that would be read as another thing: a hold is beside this one."""

Ref = Annotated[
    str, typer.Argument(help="The schedule, such as shop.nightly.", autocompletion=name_completion.schedules)
]


def shown(row: ScheduleState | ScheduleSummary) -> dict[str, Any]:
    """Return a schedule as it is printed."""
    summary = row.summary if isinstance(row, ScheduleState) else row
    zone = find_zone(summary.timezone)
    return {
        "ref": summary.ref,
        "state": summary.state,
        "action": summary.action,
        "when": summary.when,
        "timezone": summary.timezone,
        "next": _local(summary.next_due, zone) if summary.next_due else None,
        "last": _local(summary.last_due, zone) if summary.last_due else None,
        "last_status": summary.last,
        "waiting": summary.waiting,
        "error": summary.error,
        "held": summary.held,
    }


def _local(instant: datetime, zone: ZoneInfo) -> str:
    return instant.astimezone(zone).isoformat(sep=" ", timespec="seconds")


async def _one(session: Session, ref: str) -> ScheduleState:
    rows = await reading.listed(session, ref)
    if not rows:
        raise await changes.missing(session, ref)
    return rows[0]


def list_(json: Json = False) -> None:
    """List schedules, each with its next fire and the outcome of its last one."""

    async def work(client: AnyClient) -> list[dict[str, Any]]:
        return [shown(row) for row in await client.schedules.all()]

    rows = read(work)
    if json:
        for row in rows:
            json_line(row)
        return
    held = ["held"] if any(row["held"] for row in rows) else []
    columns = ["ref", "state", *held, "action", "when", "timezone", "next", "last", "last_status"]
    empty = "There are no schedules. Declare one with @schedule or Schedule(...), and `penstock apply` it."
    headings = [column.replace("_", " ") for column in columns]
    table(headings, [[row[c] for c in columns] for row in rows], empty=empty)


def show(ref: Ref, json: Json = False) -> None:
    """Show everything about a schedule."""

    async def work(session: Session) -> dict[str, Any]:
        row = await _one(session, ref)
        masking = await Masking.load(session)
        body = masking.definition("schedule", orjson.loads(row.body))
        compiled = compile_schedule(body)
        return {
            **shown(row),
            "since": row.since,
            "missed": missed_policy(compiled.policy),
            "priority": compiled.options.get("priority", 0),
            "expires": compiled.options.get("expires"),
            "definition": body,
        }

    schedule = with_session(work)
    if json:
        json_line(schedule)
        return
    if schedule["expires"]:
        schedule["expires"] = f"{span(schedule['expires'])} after the due instant"
    table(
        ["", ""],
        [
            (LABELS.get(k, k.replace("_", " ")), orjson.dumps(v).decode() if isinstance(v, dict) else v)
            for k, v in schedule.items()
        ],
    )


def missed_policy(policy: FirePolicy) -> str:
    """Return the policy for missed fires as a sentence."""
    late = f"A fire that is more than {span(policy.grace)} late is missed."
    if policy.missed == "skip":
        return f"{late} It does not run."
    which = (
        "The latest missed fire runs for all of them"
        if policy.catch_up == "one"
        else f"The latest {policy.at_most:,} missed fires run"
    )
    when = f"{span(policy.delay)} after the outage" if policy.missed == "delay" else "after the outage"
    spreading = f", spread over {span(policy.spread)}" if policy.spread else ""
    return f"{late} {which} {when}{spreading}."


@dataclass(frozen=True, slots=True)
class MissedFire:
    """A fire that is due in an outage, and its outcome: `runs`, with the instant of its start, `expired` if its execution ends
    without a start, or `skipped`."""

    due: datetime
    outcome: str
    starts: datetime | None


def missed(
    ref: Ref,
    begin: Annotated[
        str, typer.Option("--from", metavar="INSTANT", help="The beginning of the outage: 2030-01-31T09:00.")
    ],
    until: Annotated[str, typer.Option(metavar="INSTANT", help="The end of the outage: 2030-01-31T12:00.")],
    json: Json = False,
) -> None:
    """Show which missed fires would run after an outage, under the schedule's policy for missed fires. Nothing is
    started. Instants without an offset are in the schedule's zone. The overlap policy is not applied."""

    async def work(session: Session) -> tuple[CompiledSchedule, list[MissedFire], bool]:
        compiled = compile_schedule(orjson.loads((await _one(session, ref)).body))
        start = parse_instant("--from", begin, compiled.zone)
        end = parse_instant("--until", until, compiled.zone)
        if end <= start:
            raise InvalidInput("--until is not after --from", hint="Give the end of the outage.")
        plan = compiled.plan(start, end)
        runs = [_missed_fire(compiled, fire) for fire in plan.fires]
        skips = [MissedFire(due, "skipped", None) for due in plan.skipped]
        has_more = plan.more_skipped or bool(plan.next_due and plan.next_due <= end)
        return compiled, sorted([*runs, *skips], key=lambda fire: fire.due), has_more

    compiled, fires, has_more = with_session(work)
    listing(
        ["due", "outcome", "starts"],
        fires,
        lambda fire: (
            _local(fire.due, compiled.zone),
            fire.outcome,
            _local(fire.starts, compiled.zone) if fire.starts else "",
        ),
        json=json,
        empty="No fire is due between these instants.",
    )
    if not json:
        out.print(f"[dim]{missed_policy(compiled.policy)}[/dim]")
        if has_more:
            err.print("[dim]There are more fires than are listed.[/dim]")


def _missed_fire(compiled: CompiledSchedule, fire: PlannedFire) -> MissedFire:
    expires_at = compiled.expires_at(fire.due)
    if expires_at is not None and expires_at <= fire.run_at:
        return MissedFire(fire.due, "expired", None)
    return MissedFire(fire.due, "runs", fire.run_at)


def preview(
    what: Annotated[str, typer.Argument(help="A schedule, or an expression such as '30 2 * * *'.")],
    count: Annotated[int, typer.Option("--count", "-n", min=1, max=1000, help="The number of fires.")] = 10,
    timezone: Annotated[str, typer.Option(help="IANA zone of an expression.")] = "UTC",
    json: Json = False,
) -> None:
    """Show the next fires, in the zone's time, with notes on clock changes. An expression needs no database."""
    if " " in what.strip() or what.startswith("@"):
        fires = Spec.parse(what, timezone).preview(count, datetime.now(UTC))
    else:
        fires = with_session(lambda session: _upcoming(session, what, count))
    if json:
        for fire in fires:
            json_line({"instant": fire.instant, "local": fire.local.isoformat(), "note": fire.note})
        return
    rows = [(f"{f.local:%a}", f.local.isoformat(sep=" "), f.instant, f.note or "") for f in fires]
    table(["", "local", "instant", ""], rows, empty="It has no next start.")


async def _upcoming(session: Session, ref: str, count: int) -> list[Preview]:
    row = await _one(session, ref)
    compiled = compile_schedule(orjson.loads(row.body))
    return upcoming(compiled, max(row.since, row.now), count)


def history(
    ref: Ref,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The maximum number to list.")] = 20,
    before: Annotated[
        str | None, typer.Option(help="List fires before this instant, in UTC if it has no offset.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the newest fires of a schedule, their outcomes, and their origins."""
    end = None if before is None else parse_instant("--before", before)

    async def work(session: Session) -> list[Fire]:
        await _one(session, ref)
        return await reading.history(session, ref, limit, end)

    rows = with_session(work)
    listing(
        ["due", "kind", "status", "late", "started", "duration", "execution", "by", "error"],
        rows,
        lambda row: (
            row.due_at,
            row.kind,
            row.outcome or row.status,
            _seconds(row.lag) if row.kind == "due" else "",
            row.started_at,
            _seconds(row.took),
            row.execution_id,
            row.made_by,
            row.error,
        ),
        json=json,
        empty="It has not fired yet, or its fires are past their retention.",
    )


def stats(
    ref: Ref,
    last: Annotated[str, typer.Option(help='The length of the period, such as "24h" or "7d".')] = "24h",
    json: Json = False,
) -> None:
    """Show counts and times of a schedule's fires."""
    seconds = parse_duration("--last", last)

    async def work(session: Session) -> FireStats:
        await _one(session, ref)
        return await reading.stats(session, ref, seconds)

    row = with_session(work)
    if json:
        json_line({"ref": ref, "seconds": seconds, **asdict(row)})
        return
    times = ("lag_average", "lag_most", "took_average", "took_most")
    table(
        ["", last], [(k.replace("_", " "), _seconds(v) if k in times else v) for k, v in asdict(row).items()]
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f} s"


def check_health(json: Json = False) -> None:
    """List the problems of schedules, by name. Exit code 1 if there are any."""
    troubles = with_session(health.troubles)
    if json:
        for trouble in troubles:
            json_line(
                {
                    "kind": trouble.kind,
                    "schedule": trouble.schedule,
                    "says": trouble.says,
                    "hint": trouble.hint,
                }
            )
    else:
        rows = [(trouble.kind, trouble.schedule, trouble.says, trouble.hint) for trouble in troubles]
        table(["", "schedule", "", "what to do"], rows, empty="No schedule has a problem.")
    if troubles:
        if not json:
            err.print(f"[red]{len(troubles)} problems.[/red]")
        raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    for name, command in (
        ("list", list_),
        ("show", show),
        ("preview", preview),
        ("missed", missed),
        ("history", history),
        ("stats", stats),
        ("health", check_health),
    ):
        app.command(name)(command)
