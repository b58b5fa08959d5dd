"""Actions, triggers and rules as they are defined."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.client import rule_errors
from penstock.errors import InvalidInput
from penstock.operate import definitions, event_rules
from penstock.operate import retire as retiring
from penstock_api.auth.access import DEFINE_ALL, OPERATE_ALL, READ, READ_ALL, Asked, own
from penstock_api.backend import Db, Here
from penstock_api.models import definitions as models
from penstock_api.routes.router import Router

router = Router("definitions")

ACTIONS = ("action", "workflow")


@router.get("/actions", dependencies=[READ])
async def actions(session: Db) -> list[models.Definition]:
    """Actions and workflows."""
    return [models.Definition.model_validate(row) for row in await definitions.listed(session, ACTIONS)]


@router.get("/actions/{ref}", dependencies=[READ])
async def action(ref: str, session: Db) -> models.Definition:
    """An action or a workflow; the schema of its parameters is in it."""
    return models.Definition.model_validate(await definitions.one(session, ACTIONS, ref))


@router.post("/definitions/{ref}/retire", dependencies=[DEFINE_ALL])
async def retire(ref: str, session: Db) -> models.Retired:
    """Let nothing new begin of an action or a workflow, or take no more events of a trigger. What runs goes on."""
    return models.Retired(ref=ref, kinds=await retiring.retire(session, ref), retired=True)


@router.post("/definitions/{ref}/restore", dependencies=[DEFINE_ALL])
async def restore(ref: str, session: Db) -> models.Retired:
    """Bring back what was retired."""
    return models.Retired(ref=ref, kinds=await retiring.retire(session, ref, undo=True), retired=False)


@router.get("/triggers", dependencies=[READ])
async def triggers(session: Db) -> list[models.Definition]:
    """Kinds of events."""
    return [models.Definition.model_validate(row) for row in await definitions.listed(session, ["trigger"])]


@router.get("/triggers/{ref}", dependencies=[READ])
async def trigger(ref: str, session: Db) -> models.Definition:
    """A trigger; the schema of its payload is in it."""
    return models.Definition.model_validate(await definitions.one(session, ["trigger"], ref))


@router.post("/triggers/{ref}/try", dependencies=[READ])
async def try_rules(ref: str, body: models.TryRules, session: Db, caller: Asked) -> list[models.Verdict]:
    """Try which rules match an event with this payload, and why the others do not. Nothing is stored or started."""
    verdicts = await event_rules.tried_on(session, ref, body.payload, tenant=own(caller, body.tenant))
    return [models.Verdict.model_validate(verdict) for verdict in verdicts]


@router.get("/rules", dependencies=[READ])
async def rules(session: Db) -> list[models.Rule]:
    """Rules, and on how many events each has failed."""
    return [models.Rule.model_validate(row) for row in await definitions.rules(session)]


@router.get("/rules/{ref}", dependencies=[READ])
async def rule(ref: str, session: Db) -> models.Definition:
    """A rule."""
    return models.Definition.model_validate(await definitions.one(session, ["rule"], ref))


@router.post("/rules/{ref}/enable", dependencies=[OPERATE_ALL])
async def enable(ref: str, session: Db) -> models.RuleState:
    """Let it match again."""
    await definitions.enable_rule(session, ref, True)
    return models.RuleState(ref=ref, enabled=True)


@router.post("/rules/{ref}/disable", dependencies=[OPERATE_ALL])
async def disable(ref: str, session: Db) -> models.RuleState:
    """Let it match nothing until it is enabled again."""
    await definitions.enable_rule(session, ref, False)
    return models.RuleState(ref=ref, enabled=False)


@router.delete("/rules/{ref}", status_code=204, dependencies=[DEFINE_ALL])
async def delete(ref: str, session: Db) -> None:
    """Remove it. What it has started goes on."""
    await definitions.delete_rule(session, ref)


@router.get("/rule-errors", dependencies=[READ_ALL])
async def errors(
    session: Db, rule: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> list[models.RuleError]:
    """The events on which rules have failed, the newest first, and why."""
    rows = await rule_errors.newest(session, rule=rule, limit=limit)
    return [models.RuleError.model_validate(row) for row in rows]


@router.post("/rule-errors/rerun", dependencies=[OPERATE_ALL])
async def rerun(body: models.RerunRules, backend: Here) -> list[models.RerunRule]:
    """Let rules look again at the events on which they have failed."""
    if not (body.rule or body.event or body.all):
        raise InvalidInput("it is not said which", hint="Name a rule or an event, or say all.")
    outcomes = rule_errors.rerun(backend.client, rule=body.rule, event=body.event)
    return [models.RerunRule.model_validate(outcome) async for outcome in outcomes]
