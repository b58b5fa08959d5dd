"""The pages of rules: the list, their errors on events, and a form that tries a rule on a payload."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response

from penstock.client import rule_errors
from penstock.errors import DefinitionError, InvalidInput, NotFound, PenstockError
from penstock.language.rules.trial import FORM
from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS
from penstock.operate import definitions, event_rules
from penstock.operate.access import Caller
from penstock.run.json_integers import parsed_by_hand
from penstock.store.events.event_list import EventFilter
from penstock.store.session.database import Session
from penstock_api.auth.access import DEFINE_ALL, READ, Asked, own
from penstock_api.backend import Db
from penstock_api.pages.drafts import draft, form_of_options, options_of, stored_options
from penstock_api.pages.page import PageRouter, first_tenant, form_of, page
from penstock_api.pages.schema_example import example

router: APIRouter = PageRouter("rules")

TEXTS = ("description", "trigger", "action", "when", "tenant")
"""The options of a rule that are texts and have fields of their own."""
TRIED = 20
"""The number of newest events on which a rule is tried."""
ERRORS = 50
"""The number of newest errors to show."""


@router.get("/rules", dependencies=[READ])
async def show_all(request: Request, session: Db, caller: Asked, rule: str = "") -> Response:
    """Show all rules. For callers of all tenants, also show the errors of all rules, or of `rule`."""
    rows = await definitions.rules(session)
    errors = []
    if caller.tenants is None:
        errors = await rule_errors.newest(session, rule=rule or None, limit=ERRORS)
    return page(request, "rules.html", rows=rows, errors=errors, rule=rule, every=10)


@router.get("/rules/new", dependencies=[DEFINE_ALL])
async def write(
    request: Request,
    session: Db,
    change: Annotated[str, Query(description="The rule with which the form begins.")] = "",
) -> Response:
    """Show a form for a rule. The draft in the address is tried on the newest events of its trigger. Nothing is stored or
    started. The condition of a draft can read secret values of events, so only a caller that may save rules may try one."""
    form = dict(request.query_params)
    if change:
        form = {
            "ref": change,
            "changed": change,
            **form_of_options(await stored_options(session, "rule", change), TEXTS),
        }
    if change or "ref" not in form:
        return await _form(request, session, {"params": "{}", **form})
    try:
        rule = definitions.rule_of(form.get("ref", ""), options_of(form, TEXTS))
        verdicts = await event_rules.tried_on_stored(session, rule, limit=TRIED)
        written = draft(rule)
    except (InvalidInput, DefinitionError) as error:
        return await _form(request, session, form, refused=error)
    return await _form(request, session, form, draft=written, verdicts=verdicts)


async def _form(
    request: Request,
    session: Session,
    form: Mapping[str, str],
    *,
    refused: PenstockError | None = None,
    draft: Mapping[str, Any] | None = None,
    verdicts: Sequence[Mapping[str, Any]] = (),
) -> Response:
    triggers = [row["ref"] for row in await definitions.listed(session, ["trigger"])]
    actions = await definitions.listed(session, ["action", "workflow"])
    return page(
        request,
        "rule_new.html",
        422 if refused else 200,
        given=defaultdict(str, form),
        triggers=[*triggers, *SYSTEM_TRIGGERS],
        actions=[row["ref"] for row in actions if row["enabled"]],
        refused=refused,
        draft=draft,
        verdicts=verdicts,
    )


@router.get("/rules/{ref}", dependencies=[READ])
async def show(ref: str, request: Request, session: Db, caller: Asked) -> Response:
    """Show a rule, with a form that tries it. The form starts with the newest event of its trigger that the caller may
    see."""
    rule = await definitions.one(session, ["rule"], ref)
    if "window" in rule["definition"]:
        text = orjson.dumps(await _example_list(session, rule), option=orjson.OPT_INDENT_2).decode()
        return _rule_page(request, rule, {"events": text})
    trigger = rule["definition"]["trigger"]
    event_filter = EventFilter(trigger=trigger, tenants=caller.tenants)
    newest = next(iter(await event_rules.listed(session, event_filter, before=None, limit=1)), None)
    if newest is None:
        tenant = rule["definition"].get("tenant") or first_tenant(caller)
        payload = await _example(session, trigger)
    else:
        tenant, payload = newest.tenant, newest.payload
    text = orjson.dumps(payload, option=orjson.OPT_INDENT_2).decode()
    form = {"payload": text, "tenant": tenant}
    return _rule_page(request, rule, form, newest=newest)


def _rule_page(
    request: Request, rule: Mapping[str, Any], form: Mapping[str, str], **outcome: Any
) -> Response:
    """Return the page of a rule. `outcome` has the newest event, the result of a trial, or the error that refused it."""
    names = {"newest": None, "verdict": None, "played": None, "refused": None, **outcome}
    return page(request, "rule.html", 422 if names["refused"] else 200, one=rule, given=form, **names)


async def _example(session: Session, trigger: str) -> Any:
    if trigger in SYSTEM_TRIGGERS:
        return example(SYSTEM_TRIGGERS[trigger].schema())
    rows = await definitions.listed(session, ["trigger"], [trigger])
    return example(rows[0]["definition"].get("schema")) if rows else {}


async def _example_list(session: Session, rule: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return an event for each part of a rule's window, a second apart."""
    triggers = [part["trigger"] for part in event_rules.parts_of(rule["definition"]["window"])]
    payloads = {trigger: await _example(session, trigger) for trigger in triggers}
    return [
        {"trigger": trigger, "at": f"{second}s", "payload": payloads[trigger]}
        for second, trigger in enumerate(triggers)
    ]


@router.post("/rules/{ref}", dependencies=[READ])
async def try_one(ref: str, request: Request, session: Db, caller: Asked) -> Response:
    """Try the rule on an event, or a rule with a window on a list of events. Nothing is stored or started."""
    rule = await definitions.one(session, ["rule"], ref)
    if "window" in rule["definition"]:
        return await _try_list(request, session, caller, rule)
    form = {"payload": "", "tenant": first_tenant(caller), **await form_of(request)}
    verdict, refused = None, None
    try:
        verdict = await _verdict(session, rule, form, caller)
    except InvalidInput as error:
        refused = error
    return _rule_page(request, rule, form, verdict=verdict, refused=refused)


async def _try_list(request: Request, session: Session, caller: Caller, rule: Mapping[str, Any]) -> Response:
    form = {"events": "", **await form_of(request)}
    outcome, refused = None, None
    try:
        events = _json(form["events"], "list")
        if not isinstance(events, list):
            raise InvalidInput("the text is not a list of events", hint=FORM)
        tenant = rule["definition"].get("tenant") or first_tenant(caller)
        of_caller = [
            {**event, "tenant": own(caller, str(event.get("tenant") or tenant))}
            if isinstance(event, dict)
            else event
            for event in events
        ]
        outcome = await event_rules.played(session, rule["ref"], of_caller)
    except (InvalidInput, NotFound) as error:
        refused = error
    return _rule_page(request, rule, form, played=outcome, refused=refused)


def _json(text: str, thing: str) -> Any:
    try:
        return parsed_by_hand(text, f"the {thing}")
    except orjson.JSONDecodeError as error:
        raise InvalidInput(
            f"the {thing} is not JSON: {error}", hint='Write texts in double quotes: "like this".'
        ) from None


async def _verdict(
    session: Session, rule: Mapping[str, Any], form: Mapping[str, str], caller: Caller
) -> dict[str, Any] | None:
    payload = _json(form["payload"], "payload")
    tenant = own(caller, form["tenant"])
    trigger = rule["definition"]["trigger"]
    verdicts = await event_rules.tried_on(session, trigger, payload, tenant=tenant, rule=rule["ref"])
    return next(iter(verdicts), None)
