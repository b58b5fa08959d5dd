"""The execution of an action in a simulation, with all its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from penstock.errors import Conflict, InvalidInput, NotFound, PenstockError
from penstock.language.definitions.action import Action
from penstock.language.definitions.batch import Batch
from penstock.language.moves import COMPLETED, FAILED, REQUESTED, RUNNING, TIMEOUT, WAITING
from penstock.language.policies.after_attempt import Ending, ending_of
from penstock.language.policies.policies import DEFAULT_ATTEMPT_TIMEOUT, Policies, Recovery, RetryPolicy
from penstock.language.schemas.question_schema import with_checked_question
from penstock.language.terms.parameter_paths import value_at
from penstock.operate.outside import Report, outside_error
from penstock.run.outcomes import Outcome
from penstock.run.progress import STREAM, Progress
from penstock.run.run import Run, RunnableAction, TaskReadyEvent
from penstock.run.run_log import RunLog
from penstock.run.stored_json import stored_value
from penstock.testing.clock import Timer
from penstock.testing.fakes import Fake, FakeAction
from penstock.testing.simulated_batches import WaitingItem, call_here
from penstock.testing.steps import Step
from penstock.testing.world import Call, Execution, Question, Requests, World

LOST = {"type": "WorkerLost", "message": "its worker was lost"}


@dataclass(slots=True)
class OutsideWait:
    """The reports of the system outside about an attempt. The outcome may come before the action returns `later`."""

    waits: bool = False
    heartbeat: float | None = None
    outcome: Report | None = None
    timer: Timer | None = None


class ActionExecution(Execution):
    """The execution of an action. Attempts follow each other by the same rules as in production. A retry waits for the
    maximum that its policy allows, without jitter."""

    def __init__(self, world: World, call: Call) -> None:
        super().__init__(world, call)
        self.action: Action[..., Any] | None = world.known.actions.get(call.ref)
        policies = self.action.policies if self.action else Policies()
        self.batch = self.action.choices.batch if self.action else None
        options = call.options
        self.retry = RetryPolicy.model_validate(options["retry"]) if options.get("retry") else policies.retry
        self.recovery = (
            Recovery.model_validate(options["recovery"]) if options.get("recovery") else policies.recovery
        )
        self.timeouts: Mapping[str, float | None] = {
            "attempt": DEFAULT_ATTEMPT_TIMEOUT,
            **policies.timeouts.written(),
            **options.get("timeouts", {}),
        }
        self.failures = self.losses = 0
        self.carry: dict[str, Any] = {}
        self._requests: Requests | None = None
        """The requests of the current attempt, or None before the first."""
        self._outside = OutsideWait()

    def begin(self) -> None:
        self.limit(self.timeouts.get("total"))
        self._attempt()

    def _attempt(self) -> None:
        if self.ended:
            return
        self.attempt += 1
        self.status = RUNNING
        self._outside = OutsideWait()
        step = self._begin_step(self.call.ref, self.attempt)
        fake = self.world.fakes.take(self.call.ref, self.call.path)
        if fake is not None and fake.loss == "before":
            self._lose()
            return
        if self.batch is not None and (fake is None or fake.function is None):
            self._join_batch(fake, step, self.batch)
        else:
            self._report_in_time(fake, self._call(fake, step))

    def _join_batch(self, fake: Fake | None, step: Step, batch: Batch) -> None:
        """Let this attempt wait for a call with others that are ready."""
        run = self._run(fake, step)
        try:
            run.input = run.action.bind(run.params)["input"]
        except InvalidInput as error:
            self._report(Outcome.raised(error, retryable=False))
            return
        values = [value_at(self.call.parameters, path) for path in batch.by]
        key = (batch.size, self.call.ref, orjson.dumps(values, option=orjson.OPT_SORT_KEYS))
        waiting = WaitingItem(run, partial(self._report_in_time, fake), lambda: self.ended)
        self.world.batches.join(key, waiting)

    def _report_in_time(self, fake: Fake | None, outcome: Outcome) -> None:
        """Report an outcome after the time that the attempt takes."""
        outcome = with_checked_question(outcome)
        takes, limit = (fake.takes if fake else 0.0), self.timeouts.get("attempt")
        if fake is not None and fake.loss == "after":
            self.later(takes, self._lose)
        elif limit is not None and takes > limit:
            self.later(limit, lambda: self._report(Outcome.timed_out(limit)))
        elif takes:
            self.later(takes, lambda: self._report(outcome))
        else:
            self._report(outcome)

    def _call(self, fake: Fake | None, step: Step) -> Outcome:
        run = self._run(fake, step)
        try:
            return call_here(run)
        finally:
            run.log.close()
            self._close_requests()

    def _close_requests(self) -> None:
        if self._requests is not None:
            self._requests.close()

    def _run(self, fake: Fake | None, step: Step) -> Run:
        self._requests = self.world.requests_of(self, self.attempt, self.action)
        return Run(
            event=self._event(),
            params=self.call.parameters,
            action=self._runnable(fake),
            log=RunLog(partial(_keep, step)),
            timeout=self.timeouts.get("attempt"),
            carry=self.carry,
            outgoing=self._requests,
        )

    def _event(self) -> TaskReadyEvent:
        parent, call = self.call.parent, self.call
        inside = f"{parent.call.ref}.{call.task}" if parent else call.ref
        return TaskReadyEvent(
            execution_id=self.id,
            attempt=self.attempt,
            max_attempts=self.retry.max_attempts,
            namespace=f"public::{inside.replace('.', '::')}",
            action=call.ref,
            root=self.root.id,
            workflow=parent.id if parent else None,
            task=call.task,
        )

    def _runnable(self, fake: Fake | None) -> RunnableAction:
        if fake is not None and fake.function is not None:
            return FakeAction(self.call.ref, fake.function, self.action if self.batch is None else None)
        if self.action is None or self.action.function is None:
            raise NotFound(
                f"{self.call.ref} has no Python function that a simulation could run",
                hint=f"Say what it gives: simulation.fake({self.call.ref!r}, returns=...).",
            )
        return self.action

    def _report(self, outcome: Outcome) -> None:
        if self.ended:
            return
        self._close_requests()
        ending = ending_of(outcome, self.retry, self.failures)
        error = orjson.loads(ending.error) if ending.error else None
        if ending.status in (COMPLETED, WAITING) and (refusal := self._refused_requests()) is not None:
            self._end_step(FAILED, None, refusal)
            self.end(FAILED, None, refusal)
        elif ending.status == REQUESTED and error is None:
            self._end_step("deferred")
            self._defer(ending)
        elif ending.status == WAITING:
            if outcome.outside is not None:
                self._wait_outside(outcome.outside)
            else:
                assert outcome.inquiry is not None
                self._ask(outcome.inquiry)
        elif ending.status == REQUESTED:
            self._end_step("timeout" if outcome.kind == "timed_out" else FAILED, None, error)
            self.failures += 1
            self._again(self._delay(outcome))
        else:
            result = outcome.result if ending.status == COMPLETED else None
            self._end_step(ending.status, result, error)
            self.end(ending.status, result, error)

    def _refused_requests(self) -> dict[str, Any] | None:
        """Carry out the transactional requests of the attempt with its end. Return the error if one was refused, which fails
        the attempt for good, as on a worker."""
        try:
            if self._requests is not None:
                self._requests.store()
        except PenstockError as error:
            return {"type": type(error).__name__, "message": str(error)}
        return None

    def _delay(self, outcome: Outcome) -> float:
        """Return the delay without the jitter of production, so that each run of a simulation is the same."""
        delay = outcome.error.retry_after if outcome.error else None
        return self.retry.delay_before(self.failures + 1, 0.0) if delay is None else delay

    def _again(self, delay: float) -> None:
        self.status = REQUESTED
        if delay:
            self.later(delay, self._attempt)
        else:
            self.world.soon(self._attempt)

    def _defer(self, ending: Ending) -> None:
        self.carry = stored_value(ending.result.encode()) if ending.result else {}
        self._again(self._until(ending.until) if ending.until else float(ending.delay or 0.0))

    def _until(self, instant: datetime) -> float:
        return max(0.0, (instant - self.world.clock.now).total_seconds())

    def _ask(self, question: Mapping[str, Any]) -> None:
        self.status = self.steps[-1].status = WAITING
        timeout = question.get("timeout") or self.timeouts.get("waiting")

        def answered(value: Any) -> None:
            if "resume" in question:
                self._end_step("deferred")
                resumed = dict(question["resume"])
                self.carry = {**resumed, "answers": [*resumed.get("answers", []), value]}
                self._again(0.0)
            else:
                self._end_step(COMPLETED, value)
                self.end(COMPLETED, value)

        self.world.ask(Question(self, question, answered), timeout)

    # -- outcomes from outside -------------------------------------------------------------------------------------------

    def _wait_outside(self, options: Mapping[str, Any]) -> None:
        self._outside.waits, self._outside.heartbeat = True, options.get("heartbeat")
        self.status = self.steps[-1].status = WAITING
        timeout = self.timeouts.get("waiting") if options["timeout"] is None else options["timeout"]
        wait = self._outside
        if timeout is not None:
            self.later(timeout, lambda: self._end_late(wait, "nothing outside completed it in time"))
        self._expect_report()
        if self._outside.outcome is not None:
            self._end_outside(self._outside.outcome, is_early=True)

    def _expect_report(self) -> None:
        """Set the time by which the next progress or heartbeat has to come, if the action asked for them."""
        wait = self._outside
        if wait.timer is not None:
            wait.timer.cancel()
        if wait.heartbeat is not None:
            reason = f"no heartbeat came for {wait.heartbeat:.15g} s"
            wait.timer = self.later(wait.heartbeat, lambda: self._end_late(wait, reason))

    def _end_late(self, wait: OutsideWait, reason: str) -> None:
        if wait is self._outside and not self.ended and self.status == WAITING:
            self.stop(TIMEOUT, reason)

    def take_report(self, attempt: int, report: Report) -> None:
        """Take a report of the system outside about an attempt. Raises Conflict if the attempt is over, and
        InvalidInput for a report that is not valid."""
        wait = self._outside
        if attempt == self.attempt and wait.outcome == report:
            return
        is_outcome = report.kind in ("result", "error")
        is_open = attempt == self.attempt and not self.ended and (self.status == RUNNING or wait.waits)
        if not is_open or wait.outcome is not None or (not is_outcome and not wait.waits):
            raise Conflict(
                f"execution {self.id} does not wait for this: it is {self.status}",
                hint="An outcome counts once, and only before the execution ends. Nothing was changed.",
            )
        if report.kind == "error":
            outside_error(report.value)
        if is_outcome:
            wait.outcome = report
            if wait.waits:
                self.world.soon(lambda: self._end_outside(report, is_early=False))
        else:
            if report.kind == "progress":
                self.steps[-1].progress.append(Progress(float(report.value), report.text or ""))
            self._expect_report()

    def _end_outside(self, report: Report, *, is_early: bool) -> None:
        """End the wait with an outcome. An error that came before the wait is not retried."""
        if self.ended:
            return
        self._outside.waits = False
        if report.kind == "result":
            self._end_step(COMPLETED, report.value)
            self.end(COMPLETED, report.value)
        else:
            error = outside_error(report.value)
            self._report(Outcome.failed(replace(error, retryable=False) if is_early else error))

    def _lose(self) -> None:
        """Lose the worker. What follows is the same as in the database function `after_loss`."""
        if self.ended:
            return
        self._close_requests()
        self._end_step("lost", None, LOST)
        if self.recovery.on_worker_loss == "fail":
            self.end(FAILED, None, LOST)
        elif self.losses >= self.recovery.max_recoveries:
            self.end("abandoned", None, LOST)
        else:
            self.losses += 1
            self._again(0.0)


def _keep(step: Step, stream: str, line: str) -> None:
    if stream == STREAM:
        step.progress.append(Progress.read(line))
    else:
        step.log.append(line)
