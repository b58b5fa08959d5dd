"""The events, executions and signals that the steps of a durable function request in a test with `crash_everywhere`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.bounds import PAYLOAD_CAP
from penstock.client.sent_signals import sent_signal
from penstock.errors import Conflict, NotFound
from penstock.language.definitions.trigger import Trigger
from penstock.language.moves import COMPLETED, FAILED
from penstock.language.schemas import Schema, check_value
from penstock.language.terms.ids import new_id
from penstock.run.outcomes import TaskError
from penstock.run.outgoing import AwaitResult, Callback, Publish, Request, Signal, Start
from penstock.run.raised_by_code import ends_from_outside
from penstock.run.root_cause import child_failed
from penstock.run.sent_signal import SentSignal
from penstock.run.stored_json import stored_value
from penstock.testing.durable_memory import Memory
from penstock.testing.request_checks import check_request, no_transaction
from penstock.testing.world import PublishedEvent

CALLBACK = "https://simulation.invalid/callbacks/"


@dataclass(slots=True)
class StartedExecution:
    """An execution that a step started. Its status is None if the test does not say what the action does."""

    id: UUID
    ref: str
    parameters: Mapping[str, Any]
    key: str | None
    status: str | None = None
    result: Any = None
    error: Mapping[str, Any] | None = None


class DurableRequests:
    """The requests of all attempts of a run. No crash affects what was stored, and a key is stored once."""

    def __init__(self, id: UUID, memory: Memory) -> None:
        """`id` is the id of the run."""
        self._id = id
        self._memory = memory
        self.published: list[PublishedEvent] = []
        self.started: list[StartedExecution] = []
        self.signalled: list[Signal] = []

    async def carry_out(self, attempt: int | None, request: Request) -> Any:
        """Carry out a request of an attempt, or of a child (None), and return its answer.

        Raises the errors that a worker raises, and LookupError for the result of an action that the test does not replace."""
        if attempt is not None:
            self._memory.check(attempt)
        match request:
            case AwaitResult(id):
                return self._result(id)
            case Callback():
                return f"{CALLBACK}{attempt or 'child'}"
            case Publish() | Start() | Signal() if request.transactional:
                raise no_transaction()
            case Publish():
                check_request(request)
                return self._publish(request)
            case Signal():
                check_request(request)
                return self._signal(request)
            case Start():
                check_request(request)
                return await self._start(request)

    def _signal(self, request: Signal) -> SentSignal:
        """Store a signal. The run itself receives its own signals; no other execution of the test is a durable function."""
        self.signalled.append(request)
        name, id = str(request.name), request.execution_id
        if id == self._id:
            self._memory.signal(name, request.value, self._memory.now)
        if id is None:
            id = next((execution.id for execution in self.started if execution.key == request.key), None)
        return sent_signal(name, None, id)

    def _publish(self, request: Publish) -> UUID:
        trigger = self._memory.definition(Trigger, request.trigger)
        schema = None if trigger is None else trigger.payload_schema
        body = {} if request.payload is None else request.payload
        payload = stored_value(Schema(schema).check(body, what="payload", cap=PAYLOAD_CAP))
        for event in self.published:
            if request.key is not None and (event.trigger, event.key) == (request.trigger, request.key):
                if event.payload != payload:
                    raise Conflict(
                        f"this key belongs to event {event.id}, which has another payload",
                        hint="Give a different event a different key.",
                    )
                return event.id
        event = PublishedEvent(new_id(), request.trigger, payload, request.key, self._memory.now)
        self.published.append(event)
        return event.id

    async def _start(self, request: Start) -> UUID:
        parameters = stored_value(check_value(request.params, what="the parameters"))
        for execution in self.started:
            if request.key is not None and execution.key == request.key:
                if (execution.ref, execution.parameters) != (request.ref, parameters):
                    raise Conflict(
                        f"this idempotency key belongs to execution {execution.id}, which was started with other parameters",
                        hint="Use a new key for a new request.",
                    )
                return execution.id
        execution = StartedExecution(new_id(), request.ref, parameters, request.key)
        self.started.append(execution)
        if self._memory.knows(request.ref):
            await self._run(execution)
        return execution.id

    async def _run(self, execution: StartedExecution) -> None:
        try:
            execution.result = await self._memory.call(execution.ref, execution.parameters)
            execution.status = COMPLETED
        except BaseException as error:
            if ends_from_outside(error, asyncio.current_task()):
                raise
            failure = TaskError.of(error)
            execution.status = FAILED
            execution.error = {"type": failure.type, "message": failure.message}

    def _result(self, id: UUID) -> Any:
        execution = next((execution for execution in self.started if execution.id == id), None)
        if execution is None:
            raise NotFound(f"no execution {id}", hint="Give the id that `start` returned.")
        if execution.status is None:
            raise LookupError(self._memory.lacks(execution.ref))
        if execution.status == COMPLETED:
            return execution.result
        raise child_failed(id, execution.ref, execution.status, execution.error)
