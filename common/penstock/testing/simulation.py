"""A simulated installation for tests: actions and workflows run in this process, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from penstock.language.definitions.action import Action
from penstock.language.moves import COMPLETED
from penstock.language.rules.trial import MIDNIGHT
from penstock.language.terms.durations import seconds
from penstock.operate.outside import Report
from penstock.testing import simulated_outside
from penstock.testing.attempt_requests import AttemptRequests
from penstock.testing.fakes import Fake, Loss, raising, returning
from penstock.testing.known_definitions import Loadable
from penstock.testing.simulated_action import ActionExecution
from penstock.testing.simulated_effects import Effects
from penstock.testing.simulated_http import SentRequest
from penstock.testing.simulated_run import SimulatedRun
from penstock.testing.simulated_webhooks import ACCEPTED, SECRET, SimulatedWebhooks, WebhookResponse
from penstock.testing.simulated_workflow import execution_of
from penstock.testing.world import Execution, RuleFailure, World


class Simulation:
    """A simulated installation, which runs work at once, in the calling thread. Python actions and HTTP actions run as they
    are, unless they are faked; `respond` gives the responses of servers. Other actions must be faked. A function with a
    batch gets the executions that are ready. Limits, routes and schedules have no effect: nothing waits for a slot, and a
    worker is always free. Rules with a window start nothing: `play` tries them on a list of events.

    The clock starts at midnight of 1 January 2026, UTC, or at `start`. Ids count from 1, so a test is the same each
    time.
    """

    def __init__(self, *sources: Loadable, start: datetime = MIDNIGHT, max_workflow_depth: int = 20) -> None:
        """Create a simulation with the definitions of `sources`, which are arguments of `load`. Raises DefinitionError
        if a definition is not valid."""
        self._world = World(start, max_workflow_depth, execution_of, self._requests_of)
        self._world.on_start.append(lambda execution: self.runs.append(SimulatedRun(execution)))
        self._world.on_end.append(self._start_callbacks)
        self._effects = Effects(self._world)
        self._webhooks = SimulatedWebhooks(self._world, self._effects)
        self.runs: list[SimulatedRun] = []
        """The runs that the test, a rule, a callback or the code of an action started."""
        self.load(*sources)

    @property
    def now(self) -> datetime:
        """Return the time of the clock."""
        return self._world.clock.now

    @property
    def rule_failures(self) -> list[RuleFailure]:
        """Return the rules that failed on events (`event`, `rule`, `error`), in order."""
        return list(self._world.rule_failures)

    def load(self, *sources: Loadable) -> Simulation:
        """Add the definitions of modules, files, folders or packs, or single definitions with the others of their
        module. Raises DefinitionError if a definition is not valid."""
        for source in sources:
            self._world.known.add(source)
        return self

    # -- fakes -------------------------------------------------------------------------------------------------------

    def fake(
        self,
        target: Any,
        *,
        returns: Any = None,
        raises: BaseException | type[BaseException] | None = None,
        does: Callable[..., Any] | None = None,
        takes: Any = 0,
        times: int | None = None,
    ) -> Simulation:
        """Fake an action (the object or its ref) or a task (its name, or its path `ship.pack`) from now on. The fake
        has a result, an error to raise (`Retry` and the like too), or a function that is called with the parameters.

        It `takes` that long on the clock ("2h"), and is used for `times` attempts (None: for all). Of several fakes
        for an attempt the first one that is not used up counts. `takes` alone runs the action itself.
        """
        real = takes and returns is None and raises is None and does is None
        function = None if real else does or (raising(raises) if raises is not None else returning(returns))
        self._world.fakes.add(Fake(_name(target), function, float(seconds(takes)), remaining=times))
        self._know(target)
        return self

    def lose_worker(self, target: Any, *, when: Loss = "after", times: int = 1) -> Simulation:
        """Lose the worker of the next attempt of an action or task. The worker is lost after running the action, so
        that there are effects but no result, or before."""
        self._world.fakes.add(Fake(_name(target), loss=when, remaining=times))
        self._know(target)
        return self

    def answer(self, asker: str, value: Any) -> Simulation:
        """Prepare the answer to a future inquiry of a task (its path) or an action (its ref)."""
        self._world.answers[asker] = value
        return self

    # -- HTTP actions --------------------------------------------------------------------------------------------------

    def respond(
        self,
        address: str,
        *,
        method: str | None = None,
        status: int = 200,
        json: Any = None,
        text: str | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        raises: Exception | type[Exception] | None = None,
        takes: Any = 0,
        times: int | None = None,
    ) -> Simulation:
        """Give the response to the requests of HTTP actions for an address, such as `https://shop.example.org/orders/7`. Its
        query counts if it has one, and `*` stands for any characters.

        The response has a status, headers and one body, or the connection `raises` an error. It `takes` that long on the clock
        ("2h"), and is used `times` times (None: always). Of several responses to a request the first that is not used up
        counts, and an address with a query comes before one without. Raises InvalidInput."""
        self._world.http.respond(
            address,
            method=method,
            status=status,
            json=json,
            text=text,
            content=content,
            headers=headers or {},
            raises=raises,
            takes=float(seconds(takes)),
            times=times,
        )
        return self

    def secret(self, name: str, value: str) -> Simulation:
        """Set a secret, as `penstock secrets set` does. HTTP actions name it in their `secrets`. It is masked in their log,
        error and result. Raises InvalidInput."""
        self._world.http.put_secret(name, value)
        return self

    @property
    def requests(self) -> list[SentRequest]:
        """Return the requests that HTTP actions sent, in order."""
        return list(self._world.http.requests)

    # -- starts and events -------------------------------------------------------------------------------------------

    def start(
        self, target: Any, parameters: Mapping[str, Any] | None = None, /, **named: Any
    ) -> SimulatedRun:
        """Start an action or workflow, given by itself or by its ref, and run all that is possible without moving the
        clock. Raises NotFound if the simulation does not know the target, and InvalidInput if the parameters do not fit
        its schema."""
        run = self._begin(target, {**(parameters or {}), **named})
        self.settle()
        return run

    def run(self, target: Any, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> SimulatedRun:
        """Start an execution, and move the clock until it has ended, or nothing more is due. Raises NotFound if the
        simulation does not know the target, and InvalidInput if the parameters do not fit its schema."""
        return self.start(target, parameters, **named).finish()

    def publish(self, trigger: Any, payload: Any = None) -> list[SimulatedRun]:
        """Publish an event. Tasks that wait for it go on, and matching rules start their actions. Return the runs of these
        actions.

        A rule that fails on the event is among `rule_failures`, and affects no other rule. Raises NotFound for an
        unknown trigger, and InvalidInput for a payload that its schema refuses.
        """
        _, started = self._effects.publish(trigger, payload)
        self.settle()
        return [SimulatedRun(execution) for execution in started]

    def call_back(self, address: str, body: Mapping[str, Any]) -> None:
        """Send a report to an address of `current().callback()`, as the system outside does.

        It is `{"result": ...}`, `{"error": "..."}`, `{"progress": 0.4}` or `{"heartbeat": True}`. An outcome is kept
        while the action still runs, until it returns `later(...)`. Raises NotFound for another address, InvalidInput
        for a report that is not valid, and Conflict if the attempt is over."""
        execution, attempt = self._effects.called_back(address)
        assert isinstance(execution, ActionExecution)
        execution.take_report(attempt, Report.of(body))
        self.settle()

    def webhook(
        self,
        name: str,
        *,
        trigger: Any,
        signature: str = "secret",
        secret: str = SECRET,
        header: str | None = None,
        key_header: str | None = None,
        payload: Any = None,
        completes: str | None = None,
        fails: str | None = None,
    ) -> Simulation:
        """Set a webhook, with the options of `penstock webhooks set`. `trigger` is a trigger or its ref, and `payload` is a
        template. Raises NotFound for an unknown trigger, InvalidInput, and ExpressionError."""
        self._webhooks.put(
            name,
            trigger=trigger,
            signature=signature,
            secret=secret,
            header=header,
            key_header=key_header,
            payload=payload,
            completes=completes,
            fails=fails,
        )
        return self

    def call_webhook(
        self,
        name: str,
        body: Any,
        *,
        headers: Mapping[str, str] | None = None,
        query: str | Mapping[str, Any] = "",
        signed: bool = True,
    ) -> WebhookResponse:
        """Call a webhook as another program does (`POST /hooks/NAME`), and return the response and its effects. A refused call
        has a response, too, and raises nothing.

        A body of bytes or text is sent as it is, and any other value as JSON. The call is signed by the scheme of the webhook,
        at the time of the clock. `headers` replace those of the signature, and with `signed=False` there are none."""
        answer = self._webhooks.call(name, body, headers or {}, query, is_signed=signed)
        if isinstance(answer, tuple):
            problem, headers = answer
            return WebhookResponse(problem.status, problem.model_dump(exclude_none=True), headers)
        self.settle()
        event, started, settled = (
            answer.event,
            [SimulatedRun(execution) for execution in answer.started],
            _runs_of(answer.settled),
        )
        return WebhookResponse(ACCEPTED, {"id": str(event.id)}, {}, event, started, settled)

    def complete(self, id: str | UUID, *, result: Any = None) -> list[SimulatedRun]:
        """Complete what waits for the id of `later(id)`, as a webhook with `completes` does, and return its runs. If nothing
        waits for the id, the result is kept for a day, for the next wait for it.

        With a UUID, the wait of this execution is completed by hand, as `Client.complete` does. Raises InvalidInput for
        a result that cannot be stored. For a UUID, raises NotFound, and Conflict if the execution does not wait for this."""
        return self._settle(id, Report("result", result))

    def fail(self, id: str | UUID, error: str | Mapping[str, Any]) -> list[SimulatedRun]:
        """Fail the attempts that wait for an id, as `complete` completes them. The retry policy decides about another attempt,
        but a kept error fails its wait for good. `error` is a text, or has a `type`, a `message` and perhaps `retryable`.

        Raises the errors of `complete`."""
        return self._settle(id, Report("error", error))

    def progress(self, id: str, done: float, text: str | None = None) -> None:
        """Report the progress of work outside, from 0 to 1, to the callbacks of the attempts that wait for an id. Their time for
        a heartbeat begins again.

        Raises NotFound if nothing waits for the id, Conflict if an attempt passed on no callback, and InvalidInput."""
        body = {"progress": done} if text is None else {"progress": done, "text": text}
        self._note(id, Report.of(body))

    def heartbeat(self, id: str) -> None:
        """Report that work outside goes on, to the callbacks of the attempts that wait for an id. Raises the errors of
        `progress`."""
        self._note(id, Report("heartbeat", True))

    def _settle(self, id: str | UUID, outcome: Report) -> list[SimulatedRun]:
        if isinstance(id, UUID):
            settled = [simulated_outside.settle_by_hand(self._effects, id, outcome)]
        else:
            settled = simulated_outside.settle(self._world, id, outcome)
        self.settle()
        return _runs_of(settled)

    def _note(self, id: str, report: Report) -> None:
        simulated_outside.note(self._world, self._effects, id, report)
        self.settle()

    def advance(self, duration: Any) -> None:
        """Move the clock by seconds or a text such as "1d", and run all that is due by then."""
        until = self.now + timedelta(seconds=float(seconds(duration)))
        self._world.move_on(lambda: False, until)
        self._world.clock.now = until

    def settle(self) -> None:
        """Run all that is possible without moving the clock."""
        self._world.settle()

    def _begin(self, target: Any, parameters: Mapping[str, Any]) -> SimulatedRun:
        return SimulatedRun(self._effects.start(target, parameters))

    def _requests_of(
        self, execution: Execution, attempt: int, action: Action[..., Any] | None
    ) -> AttemptRequests:
        return AttemptRequests(self._effects, execution, attempt, action)

    def _know(self, target: Any) -> None:
        if not isinstance(target, str):
            self._world.known.add(target)

    def _start_callbacks(self, execution: Execution) -> None:
        action = self._world.known.actions.get(execution.call.ref)
        if action is None:
            return
        choices = action.choices
        params = {
            "execution": str(execution.id),
            "status": execution.status,
            "result": execution.result,
            "error": execution.error,
        }
        for ref in choices.on_success if execution.status == COMPLETED else choices.on_failure:
            self._begin(ref, params)


def _runs_of(executions: list[Execution]) -> list[SimulatedRun]:
    """Return the runs to which executions belong, each once."""
    return list(dict.fromkeys(SimulatedRun(execution.root) for execution in executions))


def _name(target: Any) -> str:
    return target if isinstance(target, str) else str(target.ref)
