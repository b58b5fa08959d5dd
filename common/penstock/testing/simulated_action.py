"""The execution of an action in a simulation, with all its attempts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import InvalidInput, NotFound, PenstockError
from penstock.language.definitions.action import Action
from penstock.language.definitions.batch import Batch
from penstock.language.moves import COMPLETED, FAILED, REQUESTED, RUNNING, TIMEOUT, WAITING
from penstock.language.policies.after_attempt import Ending, ending_of
from penstock.language.policies.policies import DEFAULT_ATTEMPT_TIMEOUT, Policies, Recovery, RetryPolicy
from penstock.language.schemas.question_schema import with_checked_question
from penstock.language.terms.parameter_paths import key_values
from penstock.operate.outside import OUTCOMES, Report, ending_of_report, no_outside_wait, outside_error, over
from penstock.run.outcomes import Outcome
from penstock.run.progress import STREAM, Progress
from penstock.run.run import Run, RunnableAction, TaskReadyEvent, executor_name
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
    """The reports of the system outside about an attempt. The outcome may come before the action returns `later`. `name` is
    the id of `later`."""

    waits: bool = False
    name: str | None = None
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
        elif self._is_http and (fake is None or fake.function is None):
            outcome, seconds = self._call_http(step)
            self._report_in_time(fake, outcome, seconds)
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
        labels = self.labels if batch.by_labels else {}
        values = key_values(self.call.parameters, labels, batch.by)
        key = (batch.size, self.call.ref, orjson.dumps(values, option=orjson.OPT_SORT_KEYS))
        waiting = WaitingItem(run, partial(self._report_in_time, fake), lambda: self.ended)
        self.world.batches.join(key, waiting)

    def _report_in_time(self, fake: Fake | None, outcome: Outcome, seconds: float = 0.0) -> None:
        """Report an outcome after the time that the attempt takes: that of its fake, and `seconds`."""
        outcome = with_checked_question(outcome)
        takes, limit = seconds + (fake.takes if fake else 0.0), self.timeouts.get("attempt")
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

    @property
    def _is_http(self) -> bool:
        return self.action is not None and executor_name(self.action) == "http"

    def _call_http(self, step: Step) -> tuple[Outcome, float]:
        """Make the requests of an attempt. Return its outcome, and the seconds that its servers took."""
        assert self.action is not None
        named, http = self.action.options.get("secrets"), self.world.http
        secrets: Mapping[str, str] = named if isinstance(named, Mapping) else {}
        run = self._run(None, step)
        run.log = RunLog(
            lambda stream, line: _keep(step, stream, http.conceal(secrets, line)),
            conceal=partial(http.conceal, secrets),
        )
        try:
            return http.outcome_of(run, secrets)
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
        if self.action is None or (self.action.function is None and not self._is_http):
            raise NotFound(
                f"{self.call.ref} has no Python function that a simulation could run",
                hint=f"Set its result: simulation.fake({self.call.ref!r}, returns=...).",
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
        self._outside.waits, self._outside.name = True, options.get("id")
        self._outside.heartbeat = options.get("heartbeat")
        self.status = self.steps[-1].status = WAITING
        timeout = self.timeouts.get("waiting") if options["timeout"] is None else options["timeout"]
        wait = self._outside
        if timeout is not None:
            self.later(timeout, lambda: self._end_late(wait, "nothing outside completed it in time"))
        self._expect_report()
        early = self.world.take_early_outcome(wait.name) if wait.name is not None else None
        if wait.outcome is not None:
            self._end_outside(wait.outcome, is_retried=True)
        elif early is not None:
            wait.outcome = early
            self._end_outside(early, is_retried=False)

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

    @property
    def outside_name(self) -> str | None:
        """Return the id of the outcome for which the execution waits now, or None."""
        wait = self._outside
        return wait.name if self.status == WAITING and wait.waits and wait.outcome is None else None

    def take_report_by_hand(self, report: Report) -> None:
        """Take an outcome that an operator gives. Raises Conflict if the execution does not wait for one, and
        InvalidInput for an outcome that is not valid."""
        if not self._outside.waits and self._outside.outcome is None:
            raise no_outside_wait(self.id)
        self.take_report(self.attempt, report)

    def take_report(self, attempt: int, report: Report) -> None:
        """Take a report of the system outside about an attempt. A progress or a heartbeat before the wait has no effect. Raises
        Conflict if the attempt is over, and InvalidInput for a report that is not valid."""
        wait = self._outside
        is_current, is_outcome = attempt == self.attempt, report.kind in OUTCOMES
        if is_current and wait.outcome == report:
            return
        is_open = is_current and not self.ended and (self.status == RUNNING or wait.waits)
        if not is_open or (wait.outcome is not None and (is_outcome or wait.waits)):
            raise over(self.id, self.status if is_current else f"at attempt {self.attempt}", report.kind)
        if is_outcome:
            ending_of_report(report, self.retry, self.failures, PAYLOAD_CAP)
            wait.outcome = report
            if wait.waits:
                self.world.soon(lambda: self._end_outside(report, is_retried=True))
        elif wait.waits:
            if report.kind == "progress":
                self.steps[-1].progress.append(Progress(float(report.value), report.text or ""))
            self._expect_report()

    def _end_outside(self, report: Report, *, is_retried: bool) -> None:
        """End the wait with an outcome. An error by the id of the wait that came before it is not retried."""
        if self.ended:
            return
        self._outside.waits = False
        if report.kind == "result":
            self._end_step(COMPLETED, report.value)
            self.end(COMPLETED, report.value)
        else:
            error = outside_error(report.value)
            self._report(Outcome.failed(error if is_retried else replace(error, retryable=False)))

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
