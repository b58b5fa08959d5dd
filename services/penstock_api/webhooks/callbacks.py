"""The route `POST /callbacks/<signed>`, by which other systems complete executions that wait for them. The signed address
is the permission: it is for one attempt, and one outcome."""

from __future__ import annotations

from typing import Annotated

import orjson
from fastapi import APIRouter, Path, Request
from pydantic import Field
from starlette.requests import ClientDisconnect

from penstock.errors import InvalidInput
from penstock.operate import outside
from penstock.operate.outside import Report
from penstock.run.json_integers import parsed
from penstock.store.session.committed_once import committed_once
from penstock.store.session.database import Transaction
from penstock_api.backend import Here
from penstock_api.models.model import Answer
from penstock_api.refused_webhook_calls import refused_as
from penstock_api.requests.problems import ANSWERS
from penstock_api.routes.router import operation_id
from penstock_api.webhooks.unreadable_secrets import concealed_from_caller

router = APIRouter(tags=["callbacks"], responses=ANSWERS, generate_unique_id_function=operation_id)


class ReportEffect(Answer):
    """The effect of a report."""

    effect: str = Field(
        description="`settled`: the report was applied, and the execution ended or continued. `kept`: the attempt does not "
        "wait for a report yet. The report is stored, and applied as soon as the attempt waits. `same`: this outcome was stored "
        "before. `noted`: the report was a progress update or a heartbeat."
    )


@router.post("/callbacks/{signed}")
async def report(
    signed: Annotated[str, Path(max_length=200, description="The signed part of the address.")],
    request: Request,
    backend: Here,
) -> ReportEffect:
    """Complete or fail an execution that waits for an outside system, or report its progress. The same outcome again
    changes nothing."""
    with refused_as(request, {ClientDisconnect: "callback: caller hung up"}):
        raw = await request.body()
    async with backend.pool.session() as session:
        execution, attempt = await outside.attempt_of(session, signed)
        try:
            outcome = Report.of(parsed(raw))
        except orjson.JSONDecodeError as error:
            raise InvalidInput(f"the body is not JSON: {error}", hint="Send JSON.") from None
        if outcome.kind in ("progress", "heartbeat"):
            with concealed_from_caller():
                await outside.progress(session, execution, attempt, outcome)
            return ReportEffect(effect="noted")

        async def settle(tx: Transaction) -> str:
            with concealed_from_caller():
                return await outside.report(tx, tx.settings.payload_cap, execution, attempt, outcome)

        tx, effect = await committed_once(session, settle)
    backend.client.publish_staged(tx)
    return ReportEffect(effect=effect)
