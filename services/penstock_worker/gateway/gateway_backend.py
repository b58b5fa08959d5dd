"""The backend of a worker that calls a gateway."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Any
from uuid import UUID

import orjson
import structlog

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.secret_masking import concealed_outcome
from penstock.errors import InvalidInput, PenstockError
from penstock.language.moves import CANCELLED, COMPLETED, FAILED, REQUESTED, TIMEOUT
from penstock.language.policies.after_attempt import End, Ending, Unfinished
from penstock.language.schemas import Schema
from penstock.language.terms.ids import new_id
from penstock.language.terms.redaction import concealed, hidden_forms
from penstock.messaging.metrics import Metrics
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.outgoing import LoopOutgoing, Request
from penstock.run.progress import STREAM, Progress
from penstock.run.run import executor_name
from penstock.run.run_log import LINE_LIMIT
from penstock.run.task_executors import RunnableAction
from penstock.store.executions.log_lines import NewLine
from penstock.store.session.group_commit import GroupCommit
from penstock_worker.gateway.gateway_client import GatewayClient, Refused
from penstock_worker.gateway.gateway_session import (
    UNKNOWN_SESSION,
    GatewaySession,
    given_attempt,
    is_lost,
)
from penstock_worker.records.backend import NO_COSTS, Durable
from penstock_worker.records.run_logs import RunLogs
from penstock_worker.records.worker_state import WorkerState

log = structlog.get_logger()

WAIT_S = 20.0
"""Seconds for which a take waits for work."""
PAUSE_S = 0.5
"""Seconds between two tries to take work while a session is replaced, or while a task executor is full."""
ENDS_S = 0.01
"""Seconds for which a take waits for ends, while there is more work than slots."""
LAST_TAKE_S = 5.0
"""Seconds for the answer to the last take of a worker that stops."""
MOST_ENDS = 500
MOST_LINES = 500
LINES_BYTES = 48 * 1024
"""The size of the lines in one message: a message may be smaller than a batch of long lines."""
STREAMS = frozenset({"stdout", "stderr", "log"})
STATUSES = {
    "completed": COMPLETED,
    "failed": FAILED,
    "timed_out": TIMEOUT,
    "deferred": REQUESTED,
    "cancelled": CANCELLED,
    "handed_back": REQUESTED,
}
"""The statuses for the metrics, by outcome. The gateway knows whether a failed attempt is retried, and this worker does not."""

Json = dict[str, Any]


@dataclass(slots=True)
class _Report:
    """A report of an end, as JSON. `session` is the session in which the attempt was taken."""

    owned: OwnedAttempt
    session: GatewaySession
    end: bytes
    is_settled: bool = False


class RefusedRequests:
    """The requests of an attempt that runs on a gateway's worker. Each is refused, since the worker protocol has no
    message for it."""

    def outgoing(self) -> LoopOutgoing:
        return LoopOutgoing(self._refuse)

    def close(self) -> None: ...

    async def _refuse(self, request: Request) -> None:
        raise InvalidInput(
            f"a worker that calls a gateway cannot carry out {type(request).__name__}",
            hint="Return the values that the next action needs, and let a workflow or a rule start it; or run this action "
            "on a worker with PENSTOCK_DATABASE_URL.",
        )


class GatewayBackend:
    """The backend that takes work from a gateway. `say_hello` begins a session instead of one that has ended. Before that,
    attempts of the old session have `patience` seconds to end. `own_secrets` are texts that no output may show."""

    def __init__(
        self,
        client: GatewayClient,
        session: GatewaySession,
        actions: Callable[[str], RunnableAction | None],
        state: WorkerState,
        metrics: Metrics,
        *,
        route: str,
        of_route: str | None,
        own_secrets: Sequence[str],
        patience: float,
        say_hello: Callable[[], Awaitable[GatewaySession]],
    ) -> None:
        self._client = client
        self.session = session
        self._actions = actions
        self._state = state
        self._slots = state.slots
        self._route = route
        self._of_route = of_route
        self._own = hidden_forms(own_secrets)
        self._patience = patience
        self._say_hello = say_hello
        self._ends = cache(metrics.attempts.labels)
        self._waits = metrics.start_seconds.labels
        self._schemas: dict[str, Schema] = {}
        self._sessions: dict[tuple[UUID, int], GatewaySession] = {}
        """The sessions in which the held attempts were taken, by execution."""
        self.logs = RunLogs(self._store_lines)
        self._writes: GroupCommit[_Report, bool] = GroupCommit(self._finish, max_items=MOST_ENDS)
        self.reporting: set[asyncio.Task[None]] = set()
        """The reports that are on their way."""
        self._stopping = asyncio.Event()
        self._taken = asyncio.Event()
        self._room = asyncio.Event()
        self._slots.freed.append(self._room.set)
        self._beginning = asyncio.Lock()
        self.is_taking = False
        """True while a take waits at a gateway."""
        self._is_behind = False
        """True after a take was answered with as many attempts as it had slots: there is more work."""
        self._turn = asyncio.Lock()
        """Held while a take is on its way."""
        self._ends_sent = asyncio.Event()
        """Set when ends go with a take."""
        self._has_warned = False
        self.lost = 0
        """The number of attempts that were taken away, with a refused or unreported result."""
        self.began: Callable[[GatewaySession], None] = lambda _: None
        """Called with each further session."""
        self.taken: Callable[[], None] = lambda: None
        """Called after attempts have arrived."""
        self.ended: Callable[[], None] = lambda: None
        """Called when a session has ended: its attempts are lost."""

    # -- arriving work -------------------------------------------------------------------------------------------

    async def take(self) -> None:
        """Take work until the worker is asked to stop."""
        try:
            while not self._stopping.is_set():
                self._room.clear()
                slots = self._free()
                if not slots:
                    await self._wait_for_room()
                elif not (self._is_behind and await self._waits_for_ends()):
                    async with self._turn:
                        await self._take(self._free())
        finally:
            async with self._turn:
                self._taken.set()

    async def _take(self, slots: int) -> None:
        if not slots:
            return
        session = self.session
        wait = min(WAIT_S, session.longest_wait)
        message = {"request": new_id(), "slots": slots, "wait": wait}
        taking = asyncio.ensure_future(
            self._client.call("take", message, session.secret, wait=wait, again={"again": True})
        )
        stopping = asyncio.ensure_future(self._stopping.wait())
        self.is_taking = True
        try:
            await asyncio.wait({taking, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                answer = taking.result()
            else:  # The gateway may have answered just now, and an attempt in that answer must not count as lost.
                taking.cancel()
                await asyncio.wait({taking})
                again = {**message, "again": True, "wait": 0.0}
                answer = await self._client.call("take", again, session.secret)
        except Refused as refused:
            await self._refused(refused, session)
            return
        finally:
            self.is_taking = False
            stopping.cancel()
            taking.cancel()
        self._accept(answer, slots, session)

    async def _waits_for_ends(self) -> bool:
        """Wait a moment for ends, since one call for ends and a take costs half of two calls. Return whether there was
        such a take."""
        if not self._turn.locked():
            self._ends_sent.clear()
            try:
                async with asyncio.timeout(ENDS_S):
                    await self._ends_sent.wait()
            except TimeoutError:
                return False
        async with self._turn:
            return True

    def _accept(self, answer: Json, slots: int, session: GatewaySession) -> None:
        """Begin the attempts in the answer to a take that offered `slots` slots."""
        self._is_behind = len(answer["attempts"]) >= slots
        self._begin(answer["attempts"], session)
        if answer["drain"] != self._slots.cordoned:
            self._slots.cordon(answer["drain"])

    def _begin(self, attempts: Sequence[Json], session: GatewaySession) -> None:
        owned = []
        for document in attempts:
            action = self._actions(document["action"])
            assert action is not None, "a gateway gives only the actions of the hello"
            attempt = given_attempt(document, action, self._schema(action), session, self._of_route)
            self._slots.take(attempt.event.execution_id, attempt.event.attempt)
            self._sessions[attempt.event.execution_id, attempt.event.attempt] = session
            self._state.room.give(executor_name(action, self._of_route))
            self._waits(self._route).observe(attempt.waited)
            owned.append(attempt)
        self._state.inbox.put(owned)
        if owned:
            self.taken()

    def _free(self) -> int:
        """Return the number of attempts that can begin now, whatever their task executor is."""
        claim = new_id()
        full = self._state.room.promise(claim, self._slots.free)
        self._state.room.over(claim)
        return min([self._slots.free, *full.values()])

    async def _wait_for_room(self) -> None:
        stopping = asyncio.ensure_future(self._stopping.wait())
        room = asyncio.ensure_future(self._room.wait())
        try:
            await asyncio.wait({stopping, room}, timeout=PAUSE_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()
            room.cancel()

    async def _refused(self, refused: Refused, session: GatewaySession) -> None:
        """Begin another session if this one has ended. Otherwise pause."""
        if refused.kind == UNKNOWN_SESSION:
            await self.replace(session)
        else:
            log.error("worker.refused", reason=refused.message, hint=refused.hint)
            await asyncio.sleep(PAUSE_S * random.uniform(1.0, 2.0))

    async def replace(self, session: GatewaySession) -> None:
        """Begin another session instead of one that has ended, unless that was done. Raises Refused if the gateway
        rejects the new session."""
        async with self._beginning:
            if session is self.session and not self._stopping.is_set():
                self.ended()
                with contextlib.suppress(
                    TimeoutError
                ):  # a new attempt of one of these must not meet the old one
                    async with asyncio.timeout(self._patience):
                        await self._slots.all_free()
                self.session = await self._say_hello()
                self.began(self.session)

    def _schema(self, action: RunnableAction) -> Schema:
        schema = self._schemas.get(action.ref)
        if schema is None:
            schema = self._schemas[action.ref] = Schema(getattr(action, "parameters_schema", None))
        return schema

    # -- calls of the runner about an attempt --------------------------------------------------------------------

    @property
    def result_limit(self) -> int:
        return self.session.result_bytes

    def is_incomplete(self, owned: OwnedAttempt) -> bool:
        return False

    async def complete(self, owned: OwnedAttempt) -> None:
        """Do nothing: the gateway has added to the attempt what it refers to."""

    def durable(self, owned: OwnedAttempt) -> Durable | None:
        return None

    def requests(self, owned: OwnedAttempt) -> RefusedRequests:
        return RefusedRequests()

    def add_line(self, owned: OwnedAttempt, stream: str, line: str) -> None:
        line = self.conceal_line(owned, line)
        for start in range(0, max(1, len(line)), LINE_LIMIT):
            self.logs.add(owned, stream, line[start : start + LINE_LIMIT])

    def conceal_line(self, owned: OwnedAttempt, line: str) -> str:
        return concealed(concealed(line, owned.secrets), self._own)

    def concealed(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        """Return an outcome without the token of this worker. The gateway masks the stored secrets."""
        return concealed_outcome(concealed_outcome(outcome, owned.secrets), self._own, self._own)

    async def put_away(self, owned: OwnedAttempt, outcome: Outcome) -> Outcome:
        if outcome.kind in ("inquiry", "later"):
            outcome = Outcome.failed(
                InvalidInput(
                    "a worker that calls a gateway cannot wait for an answer inside an action",
                    hint="Ask between the tasks of a workflow, or run this action on a worker with PENSTOCK_DATABASE_URL.",
                )
            )
        return self.concealed(owned, outcome)

    def took(self, owned: OwnedAttempt, seconds: float) -> None: ...

    def end(self, owned: OwnedAttempt, end: End, costs: Mapping[str, Decimal] = NO_COSTS) -> None:
        document = _end_document(end)
        if costs and not self._has_warned:
            self._has_warned = True
            log.warning(
                "worker.costs_not_reported",
                action=owned.event.action,
                hint="The reserved costs stay. Run this action on a worker with PENSTOCK_DATABASE_URL.",
            )
        self._ends(owned.event.action, STATUSES[document["outcome"]]).inc()
        session = self._sessions[owned.event.execution_id, owned.event.attempt]
        task = asyncio.create_task(self._report(_Report(owned, session, _encoded(owned, document))))
        self.reporting.add(task)
        task.add_done_callback(self.reporting.discard)

    def discard(self, owned: OwnedAttempt, *, known_to_be_lost: bool) -> None:
        self.lost += 1
        self._give_back(owned)

    def has_room(self) -> None:
        self._room.set()

    async def _report(self, report: _Report) -> None:
        """Report an end until a gateway has stored it, or says that the attempt is lost."""
        event = report.owned.event
        try:
            is_stored = await self._writes.submit(report)
        except PenstockError as refused:  # the result is too large, or is not JSON for the gateway
            log.error("worker.result_refused", execution_id=str(event.execution_id), reason=refused.message)
            error = TaskError("ResultNotStorable", refused.message, retryable=False)
            report.end = _encoded(report.owned, _end_document(Outcome.failed(error)))
            try:
                is_stored = await self._writes.submit(report)
            except PenstockError:  # executors take the attempt back, since no heartbeat names it from now on
                is_stored = False
        if not is_stored:
            self.lost += 1
            log.warning("worker.claim_lost", execution_id=str(event.execution_id), attempt=event.attempt)
        self._settled(report)

    def _settled(self, report: _Report) -> None:
        """Give back the slot of a reported attempt, once for each report: the execution may have arrived again since."""
        if not report.is_settled:
            report.is_settled = True
            self._give_back(report.owned)

    def _give_back(self, owned: OwnedAttempt) -> None:
        event = owned.event
        self._sessions.pop((event.execution_id, event.attempt), None)
        self._slots.give_back(event.execution_id, event.attempt)

    async def _finish(self, reports: Sequence[_Report]) -> list[bool | Exception]:
        """Send ends. Return for each whether it is stored. Raises Refused if the gateway rejects them."""
        await self.logs.flush()  # a gateway stores lines only while the attempt is held
        stored: dict[int, bool] = {}
        for session in {id(report.session): report.session for report in reports}.values():
            for part in self._parts([report for report in reports if report.session is session], session):
                lost_attempts = await self._send_ends(part, session)
                stored |= {
                    id(report): report.owned.event.execution_id not in lost_attempts for report in part
                }
        return [stored[id(report)] for report in reports]

    def _parts(self, reports: Sequence[_Report], session: GatewaySession) -> list[list[_Report]]:
        """Return parts of a batch that fit into a message each. A result of the largest size is alone in its message."""
        parts: list[list[_Report]] = []
        size = session.result_bytes
        for report in reports:
            if size + len(report.end) > session.result_bytes:
                parts.append([])
                size = 0
            parts[-1].append(report)
            size += len(report.end)
        return parts

    async def _send_ends(self, reports: Sequence[_Report], session: GatewaySession) -> set[UUID]:
        """Send ends of a session. Return the executions with attempts that are lost."""
        message = {"ends": [orjson.Fragment(report.end) for report in reports]}
        try:
            if self._may_take_with_ends(session):
                lost_attempts = await self._take_with_ends(message, reports, session)
                if lost_attempts is not None:
                    return lost_attempts
            answer = await self._client.call("finish", message, session.secret)
        except Refused as refused:
            if not is_lost(refused):
                raise
            return {report.owned.event.execution_id for report in reports}
        return {UUID(id) for id in answer["lost"]}

    def _may_take_with_ends(self, session: GatewaySession) -> bool:
        """Return whether there is more work, and no other take asks for it."""
        return (
            self._is_behind
            and session is self.session
            and not self._turn.locked()
            and not self._slots.cordoned
            and not self._stopping.is_set()
        )

    async def _take_with_ends(
        self, message: Json, reports: Sequence[_Report], session: GatewaySession
    ) -> set[UUID] | None:
        """Send ends, and take work into their slots with the same call. Return the executions with attempts that are
        lost. Return None if the gateway is of an earlier version, and has stored no end. Raises Refused if the gateway
        rejects the call."""
        async with self._turn:
            self._ends_sent.set()
            slots = self._free() + len(reports)
            message = {"request": new_id(), "slots": slots, **message}
            answer = await self._client.call("take", message, session.secret, again={"again": True})
            lost_attempts = None
            if "lost" in answer:
                lost_attempts = {UUID(id) for id in answer["lost"]}
                for report in reports:
                    self._settled(report)
            self._accept(answer, slots, session)
            return lost_attempts

    async def _store_lines(self, lines: Sequence[NewLine]) -> None:
        by_session: dict[int, tuple[GatewaySession, list[NewLine]]] = {}
        for line in lines:
            session = self._sessions.get((line.execution_id, line.attempt))
            if session is not None:
                by_session.setdefault(id(session), (session, []))[1].append(line)
        for session, own in by_session.values():
            written = [_line_document(line) for line in own if line.stream != STREAM]
            reports = [_progress_document(line) for line in own if line.stream == STREAM]
            for part in _lines_parts(written):
                await self._send_lines("log", "lines", part, session)
            for part in _lines_parts(reports):
                await self._send_lines("progress", "reports", part, session)

    async def _send_lines(
        self, name: str, list_name: str, items: Sequence[Json], session: GatewaySession
    ) -> None:
        try:
            await self._client.call(name, {list_name: items}, session.secret)
        except Refused as refused:
            if not is_lost(refused):
                log.error("worker.lines_refused", reason=refused.message, hint=refused.hint)

    # -- the end of the worker -----------------------------------------------------------------------------------

    def stop(self) -> None:
        self._stopping.set()

    async def close(self) -> None:
        """Wait for the answer to the last take. Its attempts begin, and have the grace to end."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_TAKE_S):
                await self._taken.wait()

    async def claimed(self) -> None: ...

    def give_up_claims(self) -> None: ...

    async def reported(self) -> None:
        while self.reporting:
            await asyncio.wait(self.reporting)
        await self.logs.flush()


def _end_document(end: End) -> Json:
    """Return the fields of an end besides its attempt."""
    if isinstance(end, Unfinished):
        return {"outcome": "handed_back", "started": True}
    if isinstance(end, Ending):
        return (
            {"outcome": "cancelled"}
            if end.status == CANCELLED
            else {"outcome": "handed_back", "started": False}
        )
    if end.kind == "completed":
        return {"outcome": "completed", "result": orjson.Fragment(end.result_json or b"null")}
    if end.kind == "deferred":
        carry = end.carry or {}
        when = {"until": end.until.isoformat()} if end.until is not None else {"delay": end.delay or 0.0}
        return {"outcome": "deferred", **when, "state": carry.get("state"), "carry": carry}
    if end.kind == "lost":  # sent as an attempt that this worker began and gives up
        return {"outcome": "handed_back", "started": True}
    error = end.error
    assert error is not None, f"an outcome of the kind {end.kind} has an error"
    return {
        "outcome": "timed_out" if end.kind == "timed_out" else "failed",
        "error": {
            "type": error.type,
            "message": error.message,
            "traceback": error.traceback,
            "kinds": error.kinds,
            "members": error.members,
            "retryable": error.retryable,
            "retry_after": error.retry_after,
            **({"answer": error.answer} if error.answer else {}),
        },
    }


def _encoded(owned: OwnedAttempt, end: Json) -> bytes:
    event = owned.event
    return orjson.dumps({"execution": event.execution_id, "attempt": event.attempt, **end})


def _line_document(line: NewLine) -> Json:
    stream = line.stream if line.stream in STREAMS else "log"
    return {
        "execution": line.execution_id,
        "attempt": line.attempt,
        "seq": line.seq,
        "stream": stream,
        "line": line.line,
    }


def _progress_document(line: NewLine) -> Json:
    progress = Progress.read(line.line)
    return {
        "execution": line.execution_id,
        "attempt": line.attempt,
        "seq": line.seq,
        "done": progress.done,
        "text": progress.text,
    }


def _lines_parts(items: Sequence[Json]) -> list[list[Json]]:
    """Return parts of a batch that fit into a message each."""
    parts: list[list[Json]] = []
    size = LINES_BYTES
    for item in items:
        needs = len(orjson.dumps(item))
        if size + needs > LINES_BYTES or len(parts[-1]) >= MOST_LINES:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += needs
    return parts
