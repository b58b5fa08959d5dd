"""Claiming: what a worker takes from an envelope, and what it needs to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
import structlog

from penstock.ids import new_id
from penstock.language import labels
from penstock.language.policies import RetryPolicy
from penstock.language.schemas import Schema
from penstock.run.task_executors import RunnableAction, TaskReadyEvent
from penstock.service.heartbeat import Identity
from penstock.store import catalog
from penstock.store.database import Row, Session, StagedMessage, retried, staged_messages
from penstock_worker.secret_masking import worth_hiding

log = structlog.get_logger()

CLAIM = """
select claimed, unknown, messages from claim_executions($1, $2, $3::uuid[], $4, $5, $6::integer[], $7::integer[])
"""
CARRIED = """
select distinct on (execution_id) execution_id, error::text as carry from attempt
where execution_id = any($1::uuid[]) and outcome = 'requested' and error ? 'carry'
order by execution_id, attempt desc
"""
CALLED = """
update outbox set due_at = clock_timestamp() where queue = $1 and error = 'the broker did not take it'
"""
DEFAULT_TIMEOUT = 300.0
"""Seconds an attempt may take where its action says nothing (the field's usual five minutes)."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A version of an action, and what its definition says about running it."""

    action: RunnableAction
    retry: RetryPolicy
    timeout: float | None
    followed: bool
    parameters: Schema


@dataclass(slots=True)
class Claimed:
    """An attempt that is ours."""

    event: TaskReadyEvent
    plan: Plan
    failures: int
    claim: UUID
    params: Mapping[str, Any]
    carry: Mapping[str, Any]
    context: Mapping[str, Any]
    waited: float
    """Seconds since it was ready, on the database's clock."""
    hidden: tuple[str, ...] = ()
    """Texts that its log and its error must not show."""


class Claims:
    """Claims for one worker. Knows which definitions it has the code for."""

    def __init__(
        self, session: Session, worker: Identity, actions: Callable[[str], RunnableAction | None]
    ) -> None:
        self._session = session
        self._worker = worker.id
        self._labels = worker.labels
        self._actions = actions
        self._plans: dict[int, Plan] = {}
        self._lacking: set[int] = set()
        self._known: list[int] = []

    async def claim(
        self, queue: str, ids: Sequence[UUID], take: int
    ) -> tuple[list[Claimed], list[StagedMessage]]:
        """Claim at most `take` of `ids`. Returns them, and what was staged to go back on its route."""
        claimed: list[Claimed] = []
        staged: list[StagedMessage] = []
        wanted = list(ids)
        while wanted:
            claim = new_id()
            row = await self._call(claim, wanted, take - len(claimed), queue)
            staged += staged_messages(row)
            claimed += await self._read(claim, row["claimed"])
            if not row["unknown"]:
                break
            await self._learn(row["unknown"])
            gone = {taken["execution_id"] for taken in row["claimed"]}
            wanted = [id for id in wanted if id not in gone]
        return claimed, staged

    async def _call(self, claim: UUID, ids: Sequence[UUID], take: int, queue: str) -> Row:
        lacking = list(self._lacking)
        [row] = await retried(
            lambda: self._session.fetch(CLAIM, self._worker, claim, ids, take, queue, self._known, lacking)
        )
        return row

    async def _read(self, claim: UUID, rows: Sequence[Row]) -> list[Claimed]:
        again = [row["execution_id"] for row in rows if row["attempt"] > 1]
        carried: dict[UUID, Any] = {}
        if again:
            for row in await self._session.fetch(CARRIED, again):
                carried[row["execution_id"]] = orjson.loads(row["carry"])["carry"]
        return [self._claimed(claim, row, carried.get(row["execution_id"])) for row in rows]

    def _claimed(self, claim: UUID, row: Row, carry: Mapping[str, Any] | None) -> Claimed:
        plan = self._plans[row["definition_id"]]
        options: Mapping[str, Any] = {}
        if row["options"] is not None:
            options = orjson.loads(row["options"])
            plan = _with_options(plan, options)
        params = orjson.loads(row["params"])
        return Claimed(
            event=TaskReadyEvent(
                execution_id=row["execution_id"],
                attempt=row["attempt"],
                max_attempts=plan.retry.max_attempts,
                namespace=row["namespace"],
                action=plan.action.ref,
            ),
            plan=plan,
            failures=row["failures"],
            claim=claim,
            params=params,
            carry=carry or {},
            context=options.get("context") or {},
            waited=row["waited"],
            hidden=worth_hiding(plan.parameters.secrets_of(params)),
        )

    async def called(self, queue: str) -> None:
        """This queue is there now: what the broker gave back because it was not goes out again at once."""
        await self._session.fetch(CALLED, queue)

    async def _learn(self, ids: Sequence[int]) -> None:
        """Look up definitions that were not seen before: which of them this worker has the code and the labels for."""
        bodies = await catalog.bodies(self._session, ids)
        for id in ids:
            body = bodies.get(id)
            action = self._actions(body["ref"]) if body and self._carries(body) else None
            if body is None or action is None:
                self._lacking.add(id)
                log.warning("worker.lacks_action", definition=id, action=body and body.get("ref"))
            else:
                self._plans[id] = _plan(action, body)
        self._known = sorted(self._plans)

    def _carries(self, body: Mapping[str, Any]) -> bool:
        return labels.carried(body.get("labels") or {}, self._labels)


def _plan(action: RunnableAction, body: Mapping[str, Any]) -> Plan:
    timeouts = body.get("timeouts") or {}
    return Plan(
        action=action,
        retry=RetryPolicy.model_validate(body.get("retry") or {}),
        timeout=timeouts.get("attempt", DEFAULT_TIMEOUT),
        followed=bool(body.get("on_success") or body.get("on_failure")),
        parameters=Schema(body.get("parameters")),
    )


def _with_options(plan: Plan, options: Mapping[str, Any]) -> Plan:
    """The plan with what this one execution (or its task in the workflow) says otherwise."""
    retry, timeouts = options.get("retry"), options.get("timeouts") or {}
    return Plan(
        action=plan.action,
        retry=RetryPolicy.model_validate(retry) if retry else plan.retry,
        timeout=timeouts.get("attempt", plan.timeout),
        followed=plan.followed,
        parameters=plan.parameters,
    )
