"""The routes of the definitions of actions, triggers and rules."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from penstock.client import rule_errors, rule_replays
from penstock.errors import InvalidInput
from penstock.operate import definitions, event_rules
from penstock.operate import retire as retiring
from penstock.store.events.rule_errors import RuleError
from penstock_api.auth.access import DEFINE_ALL, OPERATE, OPERATE_ALL, READ, READ_ALL, Asked, own
from penstock_api.backend import Db, Here
from penstock_api.models import definitions as models
from penstock_api.routes.router import Router

router = Router("definitions")

ACTIONS = ("action", "workflow")


@router.get("/actions", dependencies=[READ])
async def actions(session: Db) -> list[models.Definition]:
    """List actions and workflows."""
    return [models.Definition.model_validate(row) for row in await definitions.listed(session, ACTIONS)]


@router.get("/actions/{ref}", dependencies=[READ])
async def action(ref: str, session: Db) -> models.Definition:
    """Show an action or a workflow, with the schema of its parameters."""
    return models.Definition.model_validate(await definitions.one(session, ACTIONS, ref))


@router.post("/definitions/{ref}/retire", dependencies=[DEFINE_ALL])
async def retire(ref: str, session: Db) -> models.RetiredDefinition:
    """Retire a definition. A retired action or workflow starts no new executions, and a retired trigger accepts no events.
    Running work goes on."""
    return models.RetiredDefinition(ref=ref, kinds=await retiring.retire(session, ref), retired=True)


@router.post("/definitions/{ref}/restore", dependencies=[DEFINE_ALL])
async def restore(ref: str, session: Db) -> models.RetiredDefinition:
    """Undo the retirement of a definition."""
    return models.RetiredDefinition(
        ref=ref, kinds=await retiring.retire(session, ref, undo=True), retired=False
    )


@router.get("/triggers", dependencies=[READ])
async def triggers(session: Db) -> list[models.Definition]:
    """List triggers."""
    return [models.Definition.model_validate(row) for row in await definitions.listed(session, ["trigger"])]


@router.get("/triggers/{ref}", dependencies=[READ])
async def trigger(ref: str, session: Db) -> models.Definition:
    """Show a trigger, with the schema of its payload."""
    return models.Definition.model_validate(await definitions.one(session, ["trigger"], ref))


@router.post("/triggers/{ref}/try", dependencies=[READ])
async def try_rules(ref: str, body: models.TryRules, session: Db, caller: Asked) -> list[models.Verdict]:
    """Evaluate the rules of a trigger for this payload: which match, and why others do not. Nothing is stored or
    started."""
    verdicts = await event_rules.tried_on(session, ref, body.payload, tenant=own(caller, body.tenant))
    return [models.Verdict.model_validate(verdict) for verdict in verdicts]


@router.get("/rules", dependencies=[READ])
async def rules(session: Db) -> list[models.Rule]:
    """List rules, each with the number of events on which it failed."""
    return [models.Rule.model_validate(row) for row in await definitions.rules(session)]


@router.get("/rules/{ref}", dependencies=[READ])
async def rule(ref: str, session: Db) -> models.Definition:
    """Show a rule."""
    return models.Definition.model_validate(await definitions.one(session, ["rule"], ref))


@router.put("/rules/{ref}", dependencies=[DEFINE_ALL])
async def put_rule(ref: str, body: models.PutRule, session: Db) -> models.RuleChanged:
    """Create a rule, or replace its options. It matches events from now on."""
    change = await definitions.put_rule(session, ref, body.model_dump(exclude_unset=True))
    return models.RuleChanged(ref=ref, what=change.what)


@router.post("/rules/{ref}/enable", dependencies=[OPERATE_ALL])
async def enable(ref: str, session: Db) -> models.RuleState:
    """Enable a rule, so that it matches again."""
    await definitions.enable_rule(session, ref, True)
    return models.RuleState(ref=ref, enabled=True)


@router.post("/rules/{ref}/disable", dependencies=[OPERATE_ALL])
async def disable(ref: str, session: Db) -> models.RuleState:
    """Disable a rule. It matches nothing until it is enabled again."""
    await definitions.enable_rule(session, ref, False)
    return models.RuleState(ref=ref, enabled=False)


@router.delete("/rules/{ref}", status_code=204, dependencies=[DEFINE_ALL])
async def delete(ref: str, session: Db) -> None:
    """Delete a rule. The executions that it started continue."""
    await definitions.delete_rule(session, ref)


@router.post("/rules/{ref}/replay", dependencies=[OPERATE])
async def replay(ref: str, body: models.ReplayRule, backend: Here, caller: Asked) -> rule_replays.ReplayPage:
    """Replay stored events through a rule. Each event starts at most one execution of the rule, however often it is replayed."""
    tenants = caller.tenants if body.tenant is None else {own(caller, body.tenant)}
    selection = rule_replays.Replay(
        ref,
        body.since,
        body.until,
        tenants,
        dry_run=body.dry_run,
        cursor=body.cursor,
        limit=body.limit,
    )
    tx, page = await rule_replays.replay(backend.client.session, selection)
    backend.client.publish_staged(tx)
    return page


@router.get("/rule-errors", dependencies=[READ_ALL])
async def errors(
    session: Db,
    rule: Annotated[str | None, Query(description="Only failures of this rule.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> list[RuleError]:
    """List the events on which rules failed, newest first, with the reason."""
    return await rule_errors.newest(session, rule=rule, limit=limit)


@router.post("/rule-errors/rerun", dependencies=[OPERATE_ALL])
async def rerun(body: models.RerunRules, backend: Here) -> list[rule_errors.RerunRule]:
    """Evaluate failed rules again for the events on which they failed."""
    if not (body.rule or body.event or body.all):
        raise InvalidInput("nothing is selected", hint="Set `rule` or `event`, or set `all` to true.")
    return [outcome async for outcome in rule_errors.rerun(backend.client, rule=body.rule, event=body.event)]
