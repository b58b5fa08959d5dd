"""The records of a durable run in a test, and its simulated surroundings: children, answers, events, signals, and the
time."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.engine.durable.journal import signal_key
from penstock.engine.durable.records import (
    ASK,
    CANCELLED,
    COMPLETED,
    FAILED,
    MAP,
    RUN,
    SIGNAL,
    STARTED,
    STATE,
    SUPERSEDED,
    TOLD,
    WAIT_FOR,
    Child,
    ChildStart,
    Failure,
    History,
    Key,
    Record,
)
from penstock.errors import ClaimLost, InvalidInput
from penstock.language.definitions.action import Action
from penstock.language.definitions.trigger import Trigger
from penstock.language.rules.event_filter import check_filter
from penstock.language.rules.secret_references import checked_parameters
from penstock.language.schemas import Schema
from penstock.language.schemas.question_schema import check_default, question_schema
from penstock.language.schemas.storable_json import check_value
from penstock.language.terms.ids import new_id
from penstock.run import result_encoding
from penstock.run.context import CURRENT, Named
from penstock.run.outcomes import TaskError
from penstock.run.raised_by_code import ends_from_outside
from penstock.run.run import Run
from penstock.run.stored_json import as_stored, stored_value

D = TypeVar("D", bound=Named)
Commit = Callable[[list[Record], Callable[[], None]], None]


class Memory:
    """The records of a run, in memory. `commit` receives every write."""

    def __init__(self, now: datetime, commit: Commit) -> None:
        self.now = now
        self.records: dict[Key, Record] = {}
        self.children: dict[Key, Child] = {}
        self.answers: dict[str, list[tuple[float, Any]]] = {}
        self.signals: list[tuple[datetime, Key, Any]] = []
        self.functions: dict[str, Callable[..., Any]] = {}
        self.modules: list[Mapping[str, Any]] = []
        self.run_of: Callable[[str, Mapping[str, Any]], Run | None] = lambda ref, parameters: None
        """The run that the function of a child finds with `current()`."""
        self.cancelled_at: datetime | None = None
        self.failures = 0
        self._running: dict[Key, ChildStart] = {}
        self._failure: Failure | None = None
        self._due: dict[UUID, tuple[datetime, str, str | None]] = {}
        self.ends_as: str | None = None
        self._commit = commit
        self._attempt = 0

    @property
    def attempt(self) -> int:
        """Return the number of the current attempt, from 1."""
        return self._attempt

    def begin(self) -> AttemptMemory:
        """Begin the next attempt. Earlier attempts are over, and their further writes are refused."""
        self._attempt += 1
        return AttemptMemory(self, self._attempt)

    def check(self, attempt: int) -> None:
        if attempt != self._attempt:
            raise ClaimLost("another attempt has begun")

    def load(self) -> History:
        records = {key: copy.copy(record) for key, record in self.records.items() if record.kind != STATE}
        children = {key: copy.copy(child) for key, child in self.children.items()}
        return History(self.now, records, children, self.ends_as, self._failure)

    def write(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        conflicts: dict[Key, Record] = {}

        def store() -> None:
            for record in records:
                if (other := self._stands(record)) is None:
                    self._put(record)
                else:
                    conflicts[record.key] = copy.copy(other)

        self._commit(list(records), store)
        return conflicts

    def _stands(self, record: Record) -> Record | None:
        """Return the stored record that takes precedence over `record`, or None if `record` is to be stored."""
        if record.unless is not None and (other := self.records.get(record.unless)) is not None:
            return other
        stored = self.records.get(record.key)
        if record.status in (TOLD, SUPERSEDED) or stored is None or stored.kind == STATE:
            return None
        again = stored.status in (FAILED, CANCELLED) and stored.attempt < self._attempt
        return stored if stored.final and not again else None

    def _put(self, record: Record) -> None:
        if record.status == TOLD:
            current = self.records[record.key]
            current.told = record.told if current.told is None else current.told
            return
        stored = self.records[record.key] = copy.copy(record)
        stored.unless, stored.attempt, stored.at = None, self._attempt, self.now

    async def start(self, start: ChildStart) -> Child:
        key = start.record.key
        if key not in self.children:
            checked = self.checked(start)

            def store() -> None:
                self._store(checked)
                self.children[key].target = start.named

            self._commit([start.record], store)
        await self.run_children()
        return copy.copy(self.children[key])

    def checked(self, start: ChildStart) -> ChildStart:
        """Return a start with checked parameters. The refusals are those of a worker."""
        params = start.parameters
        if start.record.kind == ASK:
            answer_schema = question_schema(params["schema"])
            check_default(params["default"], answer_schema, cap=PAYLOAD_CAP)
            return replace(start, parameters={**params, "schema": answer_schema})
        if start.record.kind == WAIT_FOR:
            check_filter(params["filter"], params["names"], self.payload_schema(params["trigger"]))
        elif start.record.kind == RUN and (schema := self.parameter_schema(start.target)) is not None:
            return replace(start, parameters=run_parameters(schema, params))
        return start

    def payload_schema(self, trigger: str) -> Mapping[str, Any] | None:
        """Return the schema of a trigger's payloads, or None if the test does not have it."""
        definition = self.definition(Trigger, trigger)
        return None if definition is None else definition.payload_schema

    def parameter_schema(self, target: str) -> Schema | None:
        """Return the schema of the parameters of an action that is called itself, or None."""
        action = None if target in self.functions else self.definition(Action, target)
        return None if action is None else Schema(action.parameters_schema)

    def _store(self, start: ChildStart) -> None:
        key = start.record.key
        self._put(start.record)
        child = self.children[key] = Child(new_id(), STARTED, False)
        if start.record.kind in (RUN, MAP):
            self._running[key] = start
        else:
            self._expect(start, child)

    def _expect(self, start: ChildStart, child: Child) -> None:
        """Set the instant at which the answer or the event comes, or at which the wait times out."""
        answers = self.answers.get(start.record.key.name.rpartition("/")[2], [])
        timeout, default = start.parameters["timeout"], start.parameters.get("default")
        if answers and (timeout is None or answers[0][0] <= timeout):
            delay, value = answers.pop(0)
            if start.record.kind == ASK:
                _check_answer(value, start.parameters["schema"])
            self._due[child.id] = (self._in(delay), COMPLETED, _stored_text(value))
        elif timeout is not None and start.record.kind == ASK and default is not None:
            self._due[child.id] = (self._in(timeout), COMPLETED, _stored_text(default))
        elif timeout is not None:
            self._due[child.id] = (self._in(timeout), "timeout", None)
            if answers:
                answers[0] = (answers[0][0] - timeout, answers[0][1])

    def _in(self, seconds: float) -> datetime:
        return self.now + timedelta(seconds=seconds)

    async def run_children(self) -> None:
        """Call the functions of the started children in this process. They stand for work on other workers, so no
        crash affects them."""
        while self._running:
            key, start = self._running.popitem()
            await self._run(start, self.children[key])

    async def _run(self, start: ChildStart, child: Child) -> None:
        try:
            parameters = stored_value(result_encoding.encode(start.parameters))
            if start.record.kind == MAP:
                value: Any = [await self.call(start.target, item) for item in parameters["items"]]
            else:
                value = await self.call(start.target, parameters)
            child.status, child.result = COMPLETED, _stored_text(value)
        except BaseException as error:
            if ends_from_outside(error, asyncio.current_task()):
                raise
            failure = TaskError.of(error)
            child.status = FAILED
            child.error = orjson.dumps({"type": failure.type, "message": failure.message}).decode()
        child.ended, child.at = True, self.now

    async def call(self, ref: str, parameters: Mapping[str, Any]) -> Any:
        """Call the function of an action, as another worker would, with a run of its own, and return its result.

        Raises LookupError if the test does not say what the action does."""
        function, run = self.functions.get(ref), self.run_of(ref, parameters)
        if function is None:
            action = self.definition(Action, ref)
            if action is None or action.durable:
                raise LookupError(self.lacks(ref))
            function, parameters = action, action.bind(parameters)
        token = CURRENT.set(run)
        try:
            value = function(**parameters)
            value = await value if inspect.isawaitable(value) else value
        finally:
            CURRENT.reset(token)
        return stored_value(result_encoding.encode(value))

    def knows(self, ref: str) -> bool:
        """Return whether the test says what an action does."""
        action = self.definition(Action, ref)
        return ref in self.functions or (action is not None and not action.durable)

    def lacks(self, ref: str) -> str:
        return f"the test has no result for the child {ref}: use run.child({ref!r}, lambda **parameters: ...)"

    def definition(self, kind: type[D], ref: str) -> D | None:
        """Return the definition with this ref in the modules of the run, or None."""
        for names in self.modules:
            for value in names.values():
                if isinstance(value, kind) and value.ref == ref:
                    return value
        return None

    def signal(self, name: str, value: Any, due: datetime) -> None:
        """Add a signal, which is sent at `due`."""
        ordinal = 1 + sum(key.name == signal_key(name, 1).name for _, key, _ in self.signals)
        self.signals.append((due, signal_key(name, ordinal), value))

    def fail(self, error: TaskError) -> None:
        """Record that the attempt failed and is retried."""
        self.failures += 1
        self._failure = Failure(tuple(Key(*step) for step in error.steps), error.told, self._attempt)

    def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        """Return the signals among `signals` that were sent, and the children among `children` that have ended."""
        ends = {c.id: copy.copy(c) for c in self.children.values() if c.id in children and c.ended}
        return [copy.copy(self.records[key]) for key in signals if key in self.records], ends

    def cancel(self, ids: Sequence[UUID]) -> None:
        """Cancel children that the function no longer needs."""
        for key, child in self.children.items():
            if child.id in ids and not child.ended:
                child.status, child.ended, child.at = "cancelled", True, self.now
                self._running.pop(key, None)

    def move_on(self, awaited: Mapping[str, Any]) -> None:
        """Move the time to the next instant at which something arrives for a run that waits for `awaited`. Raises
        AssertionError if nothing ever arrives."""
        open_children = {UUID(id) for id in awaited["children"]}
        signals = [Key(*key) for key in awaited["signals"]]
        instants = [self._due[id][0] for id in open_children if id in self._due]
        instants += [due for due, key, _ in self.signals if key in signals]
        if awaited["until"] is not None:
            instants.append(datetime.fromisoformat(awaited["until"]))
        if self.cancelled_at is not None:
            instants.append(self.cancelled_at)
        assert instants, (
            "the run waits, and the test provides nothing that ends the wait: use run.answer, run.event or "
            "run.signal"
        )
        self.now = max(self.now, min(instants))
        self.arrive()

    def arrive(self) -> None:
        """Deliver the answers, events and signals that are due by now."""
        for child in self.children.values():
            due, status, result = self._due.get(child.id, (None, "", None))
            if due is not None and due <= self.now and not child.ended:
                child.status, child.result, child.ended, child.at = status, result, True, due
        for due, key, value in self.signals:
            if due <= self.now and key not in self.records:
                text = check_value(value, what="the value").decode()
                self.records[key] = Record(key, 0, SIGNAL, COMPLETED, text, at=due)
        if self.cancelled_at is not None and self.cancelled_at <= self.now:
            self.ends_as, self.cancelled_at = "cancelled", None


class AttemptMemory:
    """The access of one attempt to the records, as a Backend."""

    def __init__(self, memory: Memory, attempt: int) -> None:
        self._memory = memory
        self._attempt = attempt

    async def load(self) -> History:
        self._memory.arrive()
        await self._memory.run_children()
        return self._memory.load()

    async def begin(self, record: Record) -> None:
        """Do nothing: the steps are called in any case."""

    async def record(self, records: Sequence[Record]) -> Mapping[Key, Record]:
        self._memory.check(self._attempt)
        self._memory.arrive()  # a deadline passes only if no signal was sent before it
        return self._memory.write(records)

    async def resolved(self, result: Any) -> Any:
        return result

    async def start(self, children: Sequence[ChildStart]) -> Mapping[Key, Child]:
        self._memory.check(self._attempt)
        return {start.record.key: await self._memory.start(start) for start in children}

    async def ended(self, ids: Sequence[UUID], seconds: float) -> Mapping[UUID, Child]:
        await asyncio.sleep(min(seconds, 0.001))  # the other tasks of the function run meanwhile
        return {
            child.id: child for child in self._memory.children.values() if child.id in ids and child.ended
        }

    async def look(
        self, signals: Sequence[Key], children: Sequence[UUID]
    ) -> tuple[Sequence[Record], Mapping[UUID, Child]]:
        self._memory.arrive()
        return self._memory.look(signals, children)

    async def cancel(self, ids: Sequence[UUID]) -> None:
        self._memory.cancel(ids)

    def may_stay(self) -> bool:
        return False

    def asked_to_end(self) -> bool:
        return False

    def ends_at_once(self) -> bool:
        return False

    async def requested_end(self) -> str | None:
        return self._memory.ends_as


def run_parameters(schema: Schema, params: Any) -> Mapping[str, Any]:
    """Return the parameters of a child as they are stored. Raises InvalidInput for those that its schema refuses."""
    if not isinstance(params, Mapping):
        raise InvalidInput(f"the parameters are not a mapping: {type(params).__name__}")
    checked: Mapping[str, Any] = stored_value(checked_parameters(schema, params, PAYLOAD_CAP))
    return checked


def _stored_text(value: Any) -> str:
    return orjson.dumps(as_stored(value)).decode()


def _check_answer(answer: Any, schema: Mapping[str, Any] | None) -> None:
    try:
        Schema(schema).check(answer, cap=PAYLOAD_CAP, what="run.answer(...)")
    except InvalidInput as error:
        raise AssertionError(f"{error.message}: no such answer is accepted from a human") from None
