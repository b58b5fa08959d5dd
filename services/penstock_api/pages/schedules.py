"""The pages of schedules, with their next and past fires."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, get_args

import orjson
from fastapi import APIRouter, Query, Request, Response

from penstock.client.schedules import WHEN, spread, upcoming
from penstock.errors import DefinitionError, InvalidInput, PenstockError
from penstock.language.definitions.schedule import Overlap
from penstock.language.schedules import Preview
from penstock.language.schedules.compiled_schedule import compile_schedule
from penstock.language.terms.durations import as_text
from penstock.operate import definitions
from penstock.store.schedules.reading import ScheduleState
from penstock.store.session.database import Session
from penstock.store.session.noted_clock import noted
from penstock_api.auth.access import DEFINE_ALL, READ_ALL
from penstock_api.backend import Db, OnSchedules
from penstock_api.pages.drafts import draft, form_of_options, options_of, stored_options
from penstock_api.pages.page import PageRouter, page

router: APIRouter = PageRouter("schedules")

TEXTS = ("description", "action", "timezone", "overlap", "tenant")
"""The options of a schedule that are texts and have fields of their own."""
OVERLAPS: dict[Overlap, str] = {
    "allow": "start the next execution at once",
    "skip": "do not start the next execution",
    "queue": "start the next execution after the previous one has ended",
    "replace": "cancel the previous execution, then start the next one",
}
"""The effect of each overlap policy."""
DRAWN = 60
"""The number of schedules whose next fires are drawn, since each takes some time to compute."""
DAY = timedelta(days=1)
QUARTER = timedelta(minutes=15)
"""The part of the axis that has at most one bar. A schedule of each second would have 86,400 otherwise."""
WIDTH = 1000.0
PREVIEWED, PAST = 10, 20


@router.get("/schedules", dependencies=[READ_ALL])
async def show_all(request: Request, schedules: OnSchedules, find: str = "") -> Response:
    """Show all schedules, and the fires of the next 24 hours."""
    states = {row.summary.ref: row for row in await schedules.all()}
    entries = [row.summary for row in states.values()]
    rows = [schedule for schedule in entries if find.lower() in schedule.ref.lower()]
    rows.sort(key=lambda schedule: (schedule.next_due is None, schedule.next_due or noted(), schedule.ref))
    fires = {
        schedule.ref: _fires(states[schedule.ref])
        for schedule in rows[:DRAWN]
        if schedule.next_due is not None
    }
    return page(
        request,
        "schedules.html",
        rows=rows,
        all=len(entries),
        find=find,
        fires=fires,
        paused_until={ref: state.since for ref, state in states.items() if state.state == "paused"},
        trouble=await schedules.health(),
        every=10,
    )


def _fires(state: ScheduleState) -> list[float]:
    """Return the positions of the next fires on an axis of 24 hours, at most one for each quarter of an hour. A held
    schedule has none."""
    now, schedule = noted(), state.summary
    if (
        schedule.held
        or schedule.state != "active"
        or schedule.next_due is None
        or schedule.next_due > now + DAY
    ):
        return []
    fires = spread(compile_schedule(orjson.loads(state.body)), max(state.since, now), now + DAY, QUARTER)
    return [round((at - now) / DAY * WIDTH, 1) for at in fires]


@router.get("/schedules/new", dependencies=[DEFINE_ALL])
async def write(
    request: Request,
    session: Db,
    change: Annotated[str, Query(description="The schedule with which the form begins.")] = "",
) -> Response:
    """Show a form for a schedule, and the next fires of the draft in the address. Nothing is stored or started."""
    form = dict(request.query_params)
    if change:
        form = {
            "ref": change,
            "changed": change,
            **_form_of(await stored_options(session, "schedule", change)),
        }
    if change or "ref" not in form:
        return await _form(request, session, {"params": "{}", "timezone": "UTC", **form})
    try:
        options = options_of(form, TEXTS)
        if form.get("kind") in WHEN:
            options[form["kind"]] = form.get("expression", "")
        schedule = definitions.schedule_of(form.get("ref", ""), options)
        now = noted()
        preview = upcoming(compile_schedule(schedule.body()), now, PREVIEWED)
        written = draft(schedule)
    except (InvalidInput, DefinitionError) as error:
        return await _form(request, session, form, refused=error)
    return await _form(request, session, form, draft=written, preview=preview)


def _form_of(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields of the form with the options of a schedule."""
    kind = next(name for name in WHEN if name in options)
    expression = as_text(options[kind]) if kind == "every" else str(options[kind])
    unnamed = {name: value for name, value in options.items() if name != kind}
    return {**form_of_options(unnamed, TEXTS), "kind": kind, "expression": expression}


async def _form(
    request: Request,
    session: Session,
    form: Mapping[str, str],
    *,
    refused: PenstockError | None = None,
    draft: Mapping[str, Any] | None = None,
    preview: Sequence[Preview] = (),
) -> Response:
    actions = await definitions.listed(session, ["action", "workflow"])
    return page(
        request,
        "schedule_new.html",
        422 if refused else 200,
        given=defaultdict(str, form),
        kinds=WHEN,
        overlaps=get_args(Overlap),
        overlap_words=OVERLAPS,
        actions=[row["ref"] for row in actions if row["enabled"]],
        refused=refused,
        draft=draft,
        preview=preview,
    )


@router.get("/schedules/{ref}", dependencies=[READ_ALL])
async def show(ref: str, request: Request, session: Db, schedules: OnSchedules) -> Response:
    """Show a schedule, with its next and its newest fires."""
    state = await schedules.get(ref)
    return page(
        request,
        "schedule.html",
        one=state.summary,
        paused_until=state.since,
        definition=(await definitions.one(session, ["schedule"], ref))["definition"],
        preview=await schedules.preview(ref, PREVIEWED),
        history=await schedules.history(ref, PAST, None),
        stats=await schedules.stats(ref, DAY.total_seconds()),
        every=5,
    )
