"""The client over HTTP, for a program that reaches the API and not the database.

async with HttpClient("https://penstock.example.org", token="pst_...") as client:
    id = await client.start("shop.charge", {"order": 7}, key="order-7")
    result = await client.result(id)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Self
from uuid import UUID

import httpx
import orjson
from pydantic import TypeAdapter

from penstock import tracing
from penstock.client.bulk import BulkOutcome
from penstock.client.checked_arguments import checks_arguments, timeout_seconds
from penstock.client.command_kinds import check_command
from penstock.client.http_descriptions import described_execution
from penstock.client.http_encoding import error_of, filter_of, segment, word_of
from penstock.client.http_subjects import (
    AT_FIRST_USE,
    HttpBreakers,
    HttpHolds,
    HttpLimits,
    HttpRules,
    HttpSchedules,
    HttpViews,
    HttpWorkers,
)
from penstock.client.rule_replays import ReplayPage
from penstock.client.signal_receivers import check_receiver
from penstock.client.start_and_wait import Start, Startable, StartAndWait, named_start
from penstock.client.usable import check_usable
from penstock.errors import ConnectionFailed, InvalidInput, NotAllowed, NotFound, PenstockError
from penstock.language.moves import COMPLETED
from penstock.language.terms.budgets import Amount
from penstock.language.terms.routing import RoutingRule
from penstock.operate.overview import Overview
from penstock.operate.routes import RouteUse
from penstock.operate.why.answer import Why
from penstock.run.root_cause import execution_failed
from penstock.run.sent_signal import SentSignal
from penstock.store.events.enforcement_list import ListedEnforcement
from penstock.store.executions.execution_list import ExecutionFilter, ListedExecution
from penstock.store.executions.executions import Move
from penstock.store.executions.inquiries import Inquiry
from penstock.store.executions.log_lines import LogLine
from penstock.store.executions.recoveries import Recovery

PREFIX = "/api/v1"
NO_HEADERS: Mapping[str, str] = {}
PATIENCE = 30.0
"""The timeout of a request, in seconds."""
WAIT = 20.0
"""The seconds for which one request waits for a result on the server. Then the client asks again."""
PAUSE = 0.05
"""The pause before it asks again, in seconds, since a server that is about to stop answers at once."""

_OVERVIEWS = TypeAdapter(list[Overview], config=AT_FIRST_USE)
_LISTED = TypeAdapter(list[ListedExecution], config=AT_FIRST_USE)
_MOVES = TypeAdapter(list[Move], config=AT_FIRST_USE)
_ENFORCEMENTS = TypeAdapter(list[ListedEnforcement], config=AT_FIRST_USE)
_RECOVERIES = TypeAdapter(list[Recovery], config=AT_FIRST_USE)
_INQUIRIES = TypeAdapter(list[Inquiry], config=AT_FIRST_USE)
_ROUTES = TypeAdapter(list[RouteUse], config=AT_FIRST_USE)
_ROUTING_RULES = TypeAdapter(list[RoutingRule], config=AT_FIRST_USE)
_LINES = TypeAdapter(list[LogLine], config=AT_FIRST_USE)
_REPLAYED = TypeAdapter(ReplayPage)
_SENT_SIGNAL = TypeAdapter(SentSignal)
_PATHS = {"action": "/actions", "workflow": "/actions", "trigger": "/triggers", "rule": "/rules"}
"""The path of the definitions of each kind."""


def _seconds(duration: float | timedelta | str | None) -> float | str | None:
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


@checks_arguments
class HttpClient(StartAndWait):
    """A client of an installation's API. Its methods raise the errors of `Client`: NotFound, Conflict, InvalidInput,
    and ConnectionFailed if no server answers. A client is safe to share between tasks. The token identifies the
    caller."""

    def __init__(
        self, server: str, *, token: str | None = None, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        tracing.set_up()  # so that the program's own traces are propagated
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._server = server
        self._process = os.getpid()
        self._http = httpx.AsyncClient(
            base_url=server.rstrip("/"),
            headers=headers,
            timeout=PATIENCE,
            limits=httpx.Limits(max_connections=None),  # each wait for a result takes a connection
            transport=transport,
        )
        self.limits = HttpLimits(self._tell)
        self.breakers = HttpBreakers(self._tell)
        self.holds = HttpHolds(self._tell)
        self.rules = HttpRules(self._tell)
        self.schedules = HttpSchedules(self._tell)
        self.views = HttpViews(self._tell)
        self.workers = HttpWorkers(self._tell)
        self.reads = False
        """True once the server has said that the token may read."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    def _check_usable(self) -> None:
        check_usable(self._process, closed=self._http.is_closed)

    # -- commands ------------------------------------------------------------------------------------------------

    async def start(
        self,
        ref: Startable,
        params: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        tenant: str = "public",
        priority: int = 0,
        delay: float | timedelta | str | None = None,
        at: datetime | None = None,
        expires_at: datetime | None = None,
        secrets: Mapping[str, str] | None = None,
        budget: Mapping[str, Amount] | None = None,
        when_spent: str = "refuse",
        max_depth: int | None = None,
        max_descendants: int | None = None,
        labels: Mapping[str, str] | None = None,
        debounce: float | timedelta | str | None = None,
        debounce_key: str | None = None,
        at_most: float | timedelta | str | None = None,
        keep: str = "last",
    ) -> UUID:
        """Start an action, as `Client.start`."""
        ref, params = named_start(ref, params)
        body = {"action": ref, "parameters": dict(params or {}), "tenant": tenant, "priority": priority}
        optional = {
            "delay": _seconds(delay),
            "at": at,
            "expires_at": expires_at,
            "secrets": dict(secrets or {}) or None,
            "budget": None if budget is None else dict(budget),
            "when_spent": None if when_spent == "refuse" else when_spent,
            "max_depth": max_depth,
            "max_descendants": max_descendants,
            "labels": dict(labels) if labels else None,
            "debounce": _seconds(debounce),
            "debounce_key": debounce_key,
            "at_most": _seconds(at_most),
            "keep": None if keep == "last" else keep,
        }
        present = {name: value for name, value in optional.items() if value is not None}
        response = await self._send("POST", "/executions", {**body, **present}, key=key)
        return UUID(response["id"])

    async def publish(
        self,
        trigger: str,
        payload: Any = None,
        *,
        key: str | None = None,
        tenant: str = "public",
        max_depth: int | None = None,
        max_descendants: int | None = None,
    ) -> UUID:
        """Publish an event, as `Client.publish`."""
        body = {"trigger": trigger, "payload": {} if payload is None else payload, "tenant": tenant}
        bounds = {"max_depth": max_depth, "max_descendants": max_descendants}
        body |= {name: bound for name, bound in bounds.items() if bound is not None}
        return UUID((await self._send("POST", "/events", body, key=key))["id"])

    async def _result_of(self, start: Start, timeout: float | timedelta | str | None) -> Any:
        await check_reading(self, named_start(start.target)[0])
        return await super()._result_of(start, timeout)

    async def result(self, id: UUID, *, timeout: float | timedelta | str | None = None) -> Any:
        """Return the result, as `Client.result`: raises ExecutionFailed with its error, TimeoutError, NotFound."""
        async with asyncio.timeout(timeout_seconds(timeout)):
            while not (outcome := await self._get(f"/executions/{id}/result", wait=WAIT))["finished"]:
                await asyncio.sleep(PAUSE)
        if outcome["status"] == COMPLETED:
            return outcome["result"]
        raise execution_failed(id, outcome["status"], outcome["error"], outcome.get("failure"))

    async def cancel(self, *ids: UUID, reason: str = "asked by a client") -> int:
        """Cancel an execution, as `Client.cancel`."""
        count = 0
        for id in ids:
            with contextlib.suppress(NotFound):
                response = await self._send("POST", f"/executions/{id}/cancel", {"reason": reason})
                count += int(response["told"])
        return count

    async def set_priority(self, id: UUID, priority: int) -> int:
        """Set the priority of an execution that has not ended, as `Client.set_priority`."""
        response = await self._send("POST", f"/executions/{id}/priority", {"priority": priority})
        return int(response["changed"])

    async def reschedule(
        self,
        id: UUID,
        *,
        at: datetime | None = None,
        delay: float | timedelta | str | None = None,
        by: str = "",
        reason: str | None = None,
    ) -> datetime:
        """Start an execution, or its next attempt, at another instant, as `Client.reschedule`; `by` is the name of the token."""
        length = delay.total_seconds() if isinstance(delay, timedelta) else delay
        body = {"at": at, "delay": length, "reason": reason}
        response = await self._send("POST", f"/executions/{id}/reschedule", body)
        return datetime.fromisoformat(response["at"])

    async def raise_budget(self, id: UUID, unit: str, amount: Amount) -> None:
        """Raise a budget, as `Client.raise_budget`."""
        await self._send("POST", f"/executions/{id}/budget", {"unit": unit, "amount": amount})

    async def rerun(
        self,
        id: UUID,
        *,
        from_failed: bool = False,
        from_task: str | None = None,
        params: Mapping[str, Any] | None = None,
        unset: Sequence[str] = (),
        labels: Mapping[str, str] | None = None,
        by: str = "",
        reason: str | None = None,
    ) -> UUID:
        """Re-run an execution, as `Client.rerun`; `by` is the name of the token."""
        body: dict[str, Any] = {"from_failed": from_failed, "from_task": from_task, "reason": reason}
        if params:
            body["parameters"] = params
        if unset:
            body["unset"] = list(unset)
        if labels:
            body["labels"] = dict(labels)
        return UUID((await self._send("POST", f"/executions/{id}/rerun", body))["id"])

    async def replay_rule(
        self,
        ref: str,
        *,
        since: datetime,
        until: datetime | None = None,
        tenant: str | None = None,
        dry_run: bool = False,
        cursor: UUID | None = None,
        limit: int = 200,
    ) -> ReplayPage:
        """Replay stored events through a rule, as `Client.replay_rule`."""
        body = {"since": since, "until": until, "tenant": tenant, "dry_run": dry_run, "cursor": cursor}
        path = f"/rules/{segment(ref)}/replay"
        return _REPLAYED.validate_python(await self._send("POST", path, {**body, "limit": limit}))

    async def complete(self, id: UUID, *, result: Any = None, error: str | None = None, by: str = "") -> None:
        """End a wait by hand, as `Client.complete`; `by` is the name of the token."""
        outcome = {"result": result} if error is None else {"result": result, "error": error}
        await self._send("POST", f"/executions/{id}/complete", outcome)

    async def command(
        self,
        id: UUID,
        kind: str,
        *,
        task: str | None = None,
        value: Any = None,
        by: str = "",
        reason: str | None = None,
        ahead: bool = False,
    ) -> str | None:
        """Send a command, as `Client.command`; `by` is the name of the token."""
        check_command(kind)
        body: dict[str, Any] = {"reason": reason}
        if kind in ("skip", "set_result"):
            body["task"] = task
            if ahead:
                body["ahead"] = True
        if kind == "set_result":
            body["result"] = value
        accepted = await self._send("POST", f"/executions/{id}/{kind.replace('_', '-')}", body)
        notice: str | None = accepted.get("notice")
        return notice

    async def signal(
        self,
        id: UUID | None = None,
        name: str | None = None,
        value: Any = None,
        *,
        key: str | None = None,
        tenant: str | None = None,
    ) -> SentSignal:
        """Send a signal, as `Client.signal`."""
        check_receiver(id, key, tenant)
        body: dict[str, Any] = {"name": name, "value": value}
        if key is None:
            sent = await self._send("POST", f"/executions/{id}/signal", body)
        else:
            sent = await self._send("POST", "/signals", {"key": key, "tenant": tenant or "public", **body})
        return _SENT_SIGNAL.validate_python(sent)

    async def answer(self, id: UUID, response: Any, *, by: str = "", asked: datetime | None = None) -> None:
        """Answer an inquiry, as `Client.answer`; `by` is the name of the token."""
        await self._send("POST", f"/inquiries/{id}/answer", {"response": response, "asked": asked})

    async def cancel_chosen(self, filters: ExecutionFilter, *, reason: str, dry_run: bool = False) -> int:
        """Ask the executions that match the filter to end. Return the number asked, or with `dry_run` the number that
        would be."""
        count: int = 0
        cursor = None
        while True:
            response = await self._bulk("cancel", filters, cursor, dry_run, reason=reason)
            count += response["count"]
            if (cursor := response["next"]) is None:
                return count

    async def rerun_chosen(
        self,
        filters: ExecutionFilter,
        *,
        by: str = "",
        reason: str | None,
        from_failed: bool = False,
        dry_run: bool = False,
    ) -> list[BulkOutcome]:
        """Run the ended executions that match the filter again. Return the outcomes, without a mapping to the
        executions; `by` is the name of the token."""
        outcomes: list[BulkOutcome] = []
        cursor = None
        while True:
            response = await self._bulk(
                "rerun", filters, cursor, dry_run, reason=reason, from_failed=from_failed
            )
            outcomes += [BulkOutcome(UUID(int=0), "done")] * response["count"]
            for refusal in response["refused"]:
                error = PenstockError(refusal["says"], hint=refusal["hint"])
                outcomes += [BulkOutcome(UUID(refusal["example"]), error=error)] * refusal["count"]
            if (cursor := response["next"]) is None:
                return outcomes

    async def _bulk(
        self, action: str, filters: ExecutionFilter, cursor: str | None, dry_run: bool, **fields: Any
    ) -> Any:
        filtered = {name: value for name, value in filter_of(filters).items() if value}
        body = {"chosen": filtered, "all": not filtered, "before": cursor, "dry_run": dry_run, **fields}
        return await self._send("POST", f"/bulk/executions/{action}", body)

    # -- queries -------------------------------------------------------------------------------------------------

    async def executions(
        self, filters: ExecutionFilter, *, before: UUID | None = None, limit: int = 50
    ) -> list[ListedExecution]:
        """Return the executions that match the filter, newest first. `before` is the id at the end of the previous
        page."""
        page = await self._get("/executions", **filter_of(filters), before=before, limit=limit)
        return _LISTED.validate_python(page["items"])

    async def described(self, id: UUID) -> dict[str, Any]:
        """Return the full description of an execution, as `Client.described`."""
        return described_execution(await self._get(f"/executions/{id}"))

    async def event(self, id: UUID) -> dict[str, Any]:
        """Return an event, with the outcome of each rule of its trigger, as `Client.event`."""
        event = await self._get(f"/events/{id}")
        return {**event, "created_at": datetime.fromisoformat(event["created_at"])}

    async def drawing(self, id: UUID, notation: str) -> str:
        """Return the drawing of a workflow's tasks, as `Client.drawing`."""
        text: str = await self._get(f"/executions/{id}/graph", **{"as": notation})
        return text

    async def routes(self) -> list[RouteUse]:
        """Return every route that a definition names or a live worker serves."""
        return _ROUTES.validate_python(await self._get("/routes"))

    async def routing_rules(self) -> list[RoutingRule]:
        """Return the routing rules, in the order in which they are tried."""
        return _ROUTING_RULES.validate_python(await self._get("/route-rules"))

    async def history(self, id: UUID) -> list[Move]:
        """Return the moves of an execution, as `Client.history`."""
        return _MOVES.validate_python(await self._get(f"/executions/{id}/history"))

    async def why(self, id: UUID, task: str | None = None) -> Why:
        """Return the explanation of a wait or an end, as `Client.why`."""
        answer = await self._get(f"/executions/{id}/why", task=task)
        return Why(
            UUID(answer["id"]),
            answer["status"],
            answer["because"],
            answer["sentence"],
            answer["facts"],
            answer["details"],
        )

    async def inquiries(
        self,
        *,
        answered: bool = False,
        assignee: str | None = None,
        execution: UUID | None = None,
        limit: int = 100,
    ) -> list[Inquiry]:
        """Return at most `limit` inquiries, as `Client.inquiries`."""
        query = {"answered": answered, "assignee": assignee, "execution": execution, "limit": limit}
        rows = await self._get("/inquiries", **query)
        return _INQUIRIES.validate_python(rows)

    async def enforcements(
        self,
        *,
        rule: str | None = None,
        event: UUID | None = None,
        status: str | None = None,
        cursor: str | None = None,
        limit: int = 50,
    ) -> tuple[list[ListedEnforcement], str | None]:
        """Return the enforcements of the newest events, and the `cursor` of the next page, as `Client.enforcements`."""
        query = {"rule": rule, "event": event, "status": status, "before": cursor, "limit": limit}
        page = await self._get("/enforcements", **query)
        return _ENFORCEMENTS.validate_python(page["items"]), page["next"]

    async def recoveries(
        self,
        *,
        since: datetime | None = None,
        kind: str | None = None,
        worker: str | None = None,
        limit: int = 50,
    ) -> list[Recovery]:
        """Return what was lost with a worker or a message and recovered, as `Client.recoveries`."""
        query = {"since": since, "kind": kind, "worker": worker, "limit": limit}
        return _RECOVERIES.validate_python(await self._get("/recoveries", **query))

    async def definitions(self, kinds: Sequence[str], ref: str | None = None) -> list[dict[str, Any]]:
        """Return the current definitions of these kinds, as `Client.definitions`."""
        paths = sorted({_PATHS[kind] for kind in kinds if kind in _PATHS})
        rows: list[dict[str, Any]] = []
        for path in paths:
            with contextlib.suppress(NotFound):
                rows += await self._get(path) if ref is None else [await self._get(f"{path}/{segment(ref)}")]
        return [row for row in rows if row["kind"] in kinds]

    async def log_lines(self, id: UUID, after: str | None = None) -> tuple[list[LogLine], str | None, bool]:
        """Return the log lines after the position `after`, and the position of the last returned line. Also return whether the
        execution has ended and no more lines follow."""
        page = await self._get(f"/executions/{id}/logs", after=after)
        return _LINES.validate_python(page["lines"]), page["next"], page["ended"]

    async def overview(self) -> Overview:
        """Return the state of the installation: the last minute, the waiting work, the workers, the latest failures."""
        return _OVERVIEWS.validate_python([await self._get("/overview")])[0]

    async def get_json(self, /, path: str, **query: Any) -> Any:
        """Return the JSON of any other route: `get_json("/workers")`. /docs of the server lists them all."""
        return await self._get(path, **query)

    # -- requests ------------------------------------------------------------------------------------------------

    async def _get(self, path: str, **query: Any) -> Any:
        params = {name: value for name, value in query.items() if value is not None}
        return await self._ask("GET", path, params={k: word_of(v) for k, v in params.items()})

    async def _tell(self, method: str, path: str, body: Any = None) -> Any:
        return await (self._ask(method, path) if body is None else self._send(method, path, body))

    async def _send(self, method: str, path: str, body: Any, *, key: str | None = None) -> Any:
        headers = {"content-type": "application/json", **({"idempotency-key": key} if key else {})}
        try:
            content = orjson.dumps(body)
        except TypeError as error:
            raise InvalidInput(f"the request cannot be sent as JSON: {error}", hint="Give JSON.") from None
        return await self._ask(method, path, content=content, headers=headers)

    async def _ask(
        self, method: str, path: str, *, headers: Mapping[str, str] = NO_HEADERS, **how: Any
    ) -> Any:
        self._check_usable()  # the parts of the client come only here
        # an execution that this request starts continues the caller's trace
        headers = {**headers, **(tracing.current() or {})}
        try:
            answer = await self._http.request(method, PREFIX + path, headers=headers, **how)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise ConnectionFailed(
                f"{self._server} does not answer: {type(error).__name__}: {error}".rstrip(": "),
                hint="Check the address (--server, PENSTOCK_SERVER), and that `penstock api` runs there.",
            ) from None
        if answer.is_success:
            is_json = answer.headers.get("content-type", "").startswith("application/json")
            return answer.json() if is_json and answer.content else answer.text or None
        raise error_of(answer)


async def check_reading(client: HttpClient, ref: str) -> None:
    """Check that the client's token may read the result of an action, before anything is started. Raises NotAllowed if
    the token lacks the scope `read`."""
    if client.reads:
        return
    try:
        await client._get("/session")
    except NotAllowed:
        raise NotAllowed(
            f"the token lacks the scope 'read', so it cannot wait for the result of {ref}; nothing was started",
            hint=f"Start it without waiting, or make a token with both scopes: penstock tokens create NAME --scope read "
            f"--scope start:{ref}",
        ) from None
    client.reads = True
