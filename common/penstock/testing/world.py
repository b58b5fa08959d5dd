"""The shared state of a simulation's executions (`World`), and the base of these executions (`Execution`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Protocol
from uuid import UUID

from penstock.bounds import PAYLOAD_CAP
from penstock.client.inquiries import may_answer
from penstock.errors import Conflict, NotAllowed
from penstock.language.definitions.action import Action
from penstock.language.moves import CANCELLED, FINAL, REQUESTED, TIMEOUT
from penstock.language.schemas.question_schema import checked_answer
from penstock.language.terms.run_labels import searchable_labels
from penstock.operate.outside import Report
from penstock.run.outgoing import Outgoing, Request
from penstock.run.sent_signal import SentSignal
from penstock.run.stored_json import as_stored, stored_value
from penstock.testing.clock import Clock, Timer
from penstock.testing.fakes import Fakes
from penstock.testing.known_definitions import KnownDefinitions
from penstock.testing.simulated_batches import SimulatedBatches
from penstock.testing.simulated_http import SimulatedHttp
from penstock.testing.steps import Step

MOST_STEPS = 100_000
"""The maximum number of steps without a move of the clock. More mean that a workflow goes round in a circle."""
OUT_OF_TIME = "its time to complete ran out"
EARLY_OUTCOME_AGE = timedelta(days=1)
"""The time for which an outcome is kept that came before its wait."""
MOST_TIMERS = 100_000
"""The maximum number of timers that one call fires."""


@dataclass(slots=True)
class Call:
    """The call of an action. `options` are the task's options for retries, timeouts and lost workers. `labels` are those of
    the start or of the rule."""

    ref: str
    parameters: dict[str, Any]
    path: str
    parent: Execution | None = None
    task: str | None = None
    item: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """An event that the code of an action published."""

    id: UUID
    trigger: str
    payload: Any
    key: str | None
    at: datetime
    """The time of the simulation's clock."""


@dataclass(frozen=True, slots=True)
class RuleFailure:
    """A rule that failed on an event, as `penstock rules errors` shows it."""

    event: UUID
    rule: str
    error: str


class Execution(ABC):
    """An execution, which ends at most once and then notifies its world and its parent."""

    def __init__(self, world: World, call: Call) -> None:
        self.world = world
        self.call = call
        self.id: UUID = world.new_id()
        self.status = REQUESTED
        self.attempt = 0
        self.result: Any = None
        self.error: dict[str, Any] | None = None
        self.steps: list[Step] = []
        """The steps of this execution. Those of a workflow's children are among the steps of the outermost workflow."""
        self.published: list[PublishedEvent] = []
        """The events that the code of this execution and of all below it published. Only a root has them."""
        self.started: list[Execution] = []
        """The executions that the code of this execution and of all below it started. Only a root has them."""
        self._timers: list[Timer] = []
        world.executions.append(self)

    @property
    def root(self) -> Execution:
        return self.call.parent.root if self.call.parent else self

    @property
    def labels(self) -> dict[str, str]:
        """Return the labels: those of its parent, of its definition, of its searchable parameters and of its start. Of two with
        the same key, the later counts."""
        definitions, ref = self.world.known, self.call.ref
        action = definitions.actions.get(ref)
        choices = action.choices if action is not None else definitions.workflows.get(ref)
        labels = dict(self.call.parent.labels) if self.call.parent else {}
        if choices is not None:
            labels |= choices.run_labels
            labels |= searchable_labels(choices.searchable, self.call.parameters)
        labels |= self.call.labels
        return labels

    @property
    def depth(self) -> int:
        """Return the number of workflows around the execution."""
        return self.call.parent.depth + 1 if self.call.parent else 0

    @property
    def ended(self) -> bool:
        return self.status in FINAL

    @abstractmethod
    def begin(self) -> None:
        """Begin the execution. Called once it may start."""

    def child_ended(self, child: Execution) -> None:
        """Handle the end of a child. Only workflows have children."""
        raise AssertionError(f"{self.call.path} started nothing, and {child.call.path} ended")

    def end(self, status: str, result: Any = None, error: dict[str, Any] | None = None) -> None:
        if self.ended:
            return
        self.status, self.result, self.error = status, as_stored(result), as_stored(error)
        for timer in self._timers:
            timer.cancel()
        self.world.follow(self)

    def cancel(self, reason: str) -> None:
        self.stop(CANCELLED, reason)

    def cancel_by_hand(self, reason: str) -> None:
        """Cancel the execution as a person does, which also ends what cleans up already."""
        self.cancel(reason)

    def stop(self, status: str, reason: str) -> None:
        """End the execution from outside, as cancelled or timeout. A cancelled attempt has no error of its own."""
        error = {"type": status, "message": reason}
        self._end_step(status, None, None if status == CANCELLED else error)
        self.end(status, None, error)

    def check_signal(self) -> None:
        """Raise Conflict unless this execution takes signals: only durable functions that have not ended do."""
        raise Conflict(
            f"{self.call.ref} is not a durable function that runs or waits",
            hint="Name an execution of a durable function: only those wait for signals.",
        )

    def signal(self, name: str, value: Any) -> SentSignal:
        """Send a signal. Raises Conflict as `check_signal` does."""
        self.check_signal()
        raise AssertionError(f"{self.call.ref} takes signals, and has no way to receive them")

    def limit(self, seconds: float | None) -> None:
        """End the execution as timeout after so many seconds. None means no timeout."""
        if seconds is not None:
            self.later(seconds, lambda: None if self.ended else self.stop(TIMEOUT, OUT_OF_TIME))

    def later(self, seconds: float, action: Any) -> Timer:
        """Set a timer that is cancelled when the execution ends."""
        timer = self.world.clock.call_in(seconds, action)
        self._timers.append(timer)
        return timer

    def _begin_step(self, action: str, attempt: int = 1, status: str = "running") -> Step:
        call = self.call
        began = self.world.clock.now
        step = Step(call.path, action, attempt, dict(call.parameters), began, call.item, status)
        self.steps.append(step)
        self.root.steps.append(step) if self.root is not self else None
        return step

    def _end_step(self, status: str, result: Any = None, error: dict[str, Any] | None = None) -> None:
        if self.steps and self.steps[-1].ended_at is None:
            step = self.steps[-1]
            step.status, step.result, step.error = status, as_stored(result), as_stored(error)
            step.ended_at = self.world.clock.now


@dataclass(slots=True)
class Question:
    """The inquiry of an execution (`prompt`, `schema`, `assignee`, `default`), and the receiver of the answer."""

    execution: Execution
    options: Mapping[str, Any]
    answered: Callable[[Any], None]

    def answer(self, value: Any, by: str | None = None) -> None:
        """Deliver the answer. Raises InvalidInput for an answer that the schema refuses, and NotAllowed for a person
        that is not the assignee."""
        assignee = self.options.get("assignee")
        if by is not None and not may_answer(assignee, by):
            raise NotAllowed(f"only {assignee} may answer this", hint=f"Answer as {assignee}.")
        self.answered(self.check(value))

    def check(self, value: Any) -> Any:
        """Return an answer as it is stored. Raises InvalidInput for one that the schema refuses."""
        return stored_value(checked_answer(value, self.options.get("schema"), cap=PAYLOAD_CAP))


@dataclass(slots=True)
class EventWait:
    """An execution that waits for an event: whether an event matches, and what it does then."""

    execution: Execution
    fits: Callable[[Mapping[str, Any]], bool]
    complete: Callable[[Mapping[str, Any]], None]


class Requests(Outgoing, Protocol):
    """The requests of one attempt to its simulation."""

    def carry_out(self, request: Request) -> Any:
        """Carry out a request at once, or keep it for the end of the attempt. Return its answer."""

    def store(self) -> None:
        """Carry out what was kept. Raises Conflict if a kept request cannot be carried out."""

    def close(self) -> None:
        """Refuse further requests."""


class World:
    """The state of one installation, in memory."""

    def __init__(
        self,
        now: datetime,
        max_workflow_depth: int,
        execution_of: Callable[[World, Call], Execution],
        requests_of: Callable[[Execution, int, Action[..., Any] | None], Requests],
    ) -> None:
        self.execution_of = execution_of
        self.requests_of = requests_of
        self.clock = Clock(now)
        self.known = KnownDefinitions()
        self.fakes = Fakes()
        self.http = SimulatedHttp(self.clock)
        self.max_workflow_depth = max_workflow_depth
        self.executions: list[Execution] = []
        self.questions: list[Question] = []
        self.event_waits: list[EventWait] = []
        self.batches = SimulatedBatches()
        self.rule_failures: list[RuleFailure] = []
        self.answers: dict[str, Any] = {}
        """The prepared answers to future inquiries, by the path or the ref of the asking execution."""
        self._early_outcomes: dict[str, tuple[datetime, Report]] = {}
        """The outcomes of work outside for which nothing waited yet, by the id of `later`, with the time until which each is
        kept."""
        self._ready: deque[Callable[[], None]] = deque()
        self._numbers = count(1)
        self.on_start: list[Callable[[Execution], None]] = []
        self.on_end: list[Callable[[Execution], None]] = []

    def new_id(self) -> UUID:
        """Return the next id, from 1 on, so that ids are the same in each run of a test."""
        return UUID(int=next(self._numbers))

    def ref_of(self, target: Any) -> str:
        """Return the ref of an action or workflow, given by itself or by its ref. One that is faked need not be known.
        Raises NotFound if the simulation does not know it."""
        if isinstance(target, str) and target in self.fakes.targets and target not in self.known.actions:
            return target
        return self.known.runnable(target).ref

    def soon(self, action: Callable[[], None]) -> None:
        self._ready.append(action)

    def settle(self) -> None:
        """Run all that is possible without moving the clock. Raises InvalidInput for a fake that replaces nothing."""
        self.fakes.check(self.known.names)
        for _ in range(MOST_STEPS):
            if self._ready:
                self._ready.popleft()()
            elif not self.batches.call_next():
                return
        raise RuntimeError(
            f"after {MOST_STEPS:,} steps there is still work to do, and the simulated clock does not advance"
        )

    def move_on(self, done: Callable[[], bool], until: datetime | None = None) -> None:
        """Move the clock from one timer to the next, until `done` is true, no timer is due, or `until` is reached."""
        self.settle()
        for _ in range(MOST_TIMERS):
            if done() or not self.clock.fire_next(until):
                return
            self.settle()
        raise RuntimeError(f"after {MOST_TIMERS:,} timers there are still more timers due")

    def follow(self, execution: Execution) -> None:
        """Handle the end of an execution: drop its inquiries and waits, and notify its parent and the listeners."""
        self.withdraw_questions(execution)
        self.event_waits = [entry for entry in self.event_waits if entry.execution is not execution]
        parent = execution.call.parent
        if parent is not None:
            self.soon(lambda: parent.child_ended(execution))
        for listener in self.on_end:
            listener(execution)

    def withdraw_questions(self, execution: Execution) -> None:
        self.questions = [entry for entry in self.questions if entry.execution is not execution]

    def keep_early_outcome(self, name: str, report: Report) -> None:
        """Keep an outcome for a day, for the execution that will wait for this id. The first outcome stays."""
        kept_until, _ = self._early_outcomes.get(name, (self.clock.now, None))
        if kept_until <= self.clock.now:
            self._early_outcomes[name] = self.clock.now + EARLY_OUTCOME_AGE, report

    def take_early_outcome(self, name: str) -> Report | None:
        """Return the outcome that is kept for an id, and forget it. None without one."""
        kept_until, report = self._early_outcomes.pop(name, (self.clock.now, None))
        return report if kept_until > self.clock.now else None

    def ask(self, question: Question, timeout: float | None) -> None:
        """Open an inquiry. A prepared answer is delivered at once."""
        self.questions.append(question)
        call = question.execution.call
        for name in (call.path, call.ref):
            if name in self.answers:
                self.soon(lambda value=self.answers[name]: self.answer(question, value))  # type: ignore[misc]
                return
        if timeout is not None:
            question.execution.later(timeout, lambda: self._expire(question))

    def answer(self, question: Question, value: Any, by: str | None = None) -> None:
        """Answer an inquiry. Does nothing if it is no longer open. Raises InvalidInput if the value does not fit the
        schema of the inquiry."""
        if question in self.questions:
            question.answer(value, by)
            self.questions = [other for other in self.questions if other is not question]

    def _expire(self, question: Question) -> None:
        if question not in self.questions:
            return
        if question.options.get("default") is not None:
            self.answer(question, question.options["default"])
        else:
            question.execution.stop(TIMEOUT, "its inquiry got no answer in time")
