"""An installation in memory, for tests: actions and workflows run in this process, on a clock that the test moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.errors import DefinitionError
from penstock.language.moves import COMPLETED
from penstock.language.rules.event_rules import compile_rule, event_namespace
from penstock.language.rules.event_rules import evaluate as evaluate_rule
from penstock.language.rules.trial import MIDNIGHT, SimulatedEvent
from penstock.language.schemas import Schema
from penstock.language.terms.durations import seconds
from penstock.testing.fakes import Fake, Loss, raising, returning
from penstock.testing.known_definitions import Loadable
from penstock.testing.simulated_run import SimulatedRun
from penstock.testing.simulated_workflow import execution_of
from penstock.testing.world import Call, Execution, World


class Simulation:
    """Runs what it is told to at once, in this thread. Python actions run as they are, unless they are faked; others have
    to be. Limits, routes and schedules play no part: nothing stands in line, and there is always a worker.

    What runs begins at midnight of 1 January 2026, UTC, or at `start`; ids count from 1: a test does the same each time."""

    def __init__(self, *sources: Loadable, start: datetime = MIDNIGHT, max_workflow_depth: int = 20) -> None:
        """`sources` are what `load` takes. Raises DefinitionError."""
        self._world = World(start, max_workflow_depth, execution_of)
        self._world.on_end.append(self._start_callbacks)
        self.runs: list[SimulatedRun] = []
        """All that was started by itself, by the test, a rule or a callback."""
        self.load(*sources)

    @property
    def now(self) -> datetime:
        """Return the time of the clock."""
        return self._world.clock.now

    def load(self, *sources: Loadable) -> Simulation:
        """Know these definitions too: of modules, files, folders, packs, or single ones with what stands in their module.
        Raises DefinitionError."""
        for source in sources:
            self._world.known.add(source)
        return self

    # -- what is not real -----------------------------------------------------------------------------------------

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
        """From now on something stands in for an action (given itself, or its ref), or for a task (its name, or its path
        `ship.pack`): a result, an error to raise (`Retry` and the like too), or a function that is called with the
        parameters. It `takes` so long on the clock ("2h"), and is used for so many attempts (`times`; None: for all). Of
        several for one attempt the first that is not used up counts. `takes` alone lets the action itself run."""
        real = takes and returns is None and raises is None and does is None
        function = None if real else does or (raising(raises) if raises is not None else returning(returns))
        self._world.fakes.add(Fake(_name(target), function, float(seconds(takes)), left=times))
        self._know(target)
        return self

    def lose_worker(self, target: Any, *, when: Loss = "after", times: int = 1) -> Simulation:
        """Let the worker of the next attempt of an action or task be lost: after it has run the action, so that its effects
        are there and its result is not; or before."""
        self._world.fakes.add(Fake(_name(target), loss=when, left=times))
        self._know(target)
        return self

    def answer(self, asker: str, value: Any) -> Simulation:
        """The answer to a question that will be asked, by a task (its path) or an action (its ref)."""
        self._world.answers[asker] = value
        return self

    # -- what happens ---------------------------------------------------------------------------------------------

    def start(
        self, target: Any, parameters: Mapping[str, Any] | None = None, /, **named: Any
    ) -> SimulatedRun:
        """Start an action or workflow, given itself or by its ref, and do what can be done without the clock moving.
        Raises NotFound, InvalidInput."""
        run = self._begin(target, {**(parameters or {}), **named})
        self.settle()
        return run

    def run(self, target: Any, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> SimulatedRun:
        """Start the execution, and move the clock on until it has ended, or nothing is due any more. Raises NotFound,
        InvalidInput."""
        return self.start(target, parameters, **named).finish()

    def publish(self, trigger: Any, payload: Any = None) -> list[SimulatedRun]:
        """Publish an event: rules start what they start (which is given), and tasks that wait for it go on. Raises
        NotFound, InvalidInput for a payload that does not fit, DefinitionError where a rule fails."""
        definition = self._world.known.trigger(trigger)
        payload = orjson.loads(
            Schema(definition.payload_schema).check(payload, what="payload", cap=PAYLOAD_CAP)
        )
        event = SimulatedEvent(definition.ref, id=self._world.new_id(), created_at=self.now)
        namespace = event_namespace(event, payload)
        fitting = [wait for wait in self._world.event_waits if wait.fits(namespace)]
        started = []
        for rule in self._world.known.rules_of(definition.ref):
            match = evaluate_rule(compile_rule(rule.body()), event, payload)
            if match.error is not None:
                raise DefinitionError(f"rule {rule.ref} fails on this event: {match.error}")
            if match.matched and rule.enabled:
                started.append(self._begin(rule.action, match.params))
        for wait in fitting:
            wait.complete(namespace)
        self.settle()
        return started

    def advance(self, duration: Any) -> None:
        """Move the clock on, by seconds or "1d", and do all that is due until then."""
        until = self.now + timedelta(seconds=float(seconds(duration)))
        self._world.move_on(lambda: False, until)
        self._world.clock.now = until

    def settle(self) -> None:
        """Do all that can be done without the clock moving."""
        self._world.settle()

    def _begin(self, target: Any, parameters: Mapping[str, Any]) -> SimulatedRun:
        definitions = self._world.known
        if (
            isinstance(target, str)
            and target in self._world.fakes.targets
            and target not in definitions.actions
        ):
            ref = target
        else:
            ref = definitions.runnable(target).ref
        checked = orjson.loads(definitions.schema(ref).check(parameters, cap=PAYLOAD_CAP))
        execution = execution_of(self._world, Call(ref, checked, ref.rpartition(".")[2]))
        self._world.soon(execution.begin)
        run = SimulatedRun(execution)
        self.runs.append(run)
        return run

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


def _name(target: Any) -> str:
    return target if isinstance(target, str) else str(target.ref)
