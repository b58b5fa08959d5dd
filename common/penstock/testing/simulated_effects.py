"""The events and executions that the code of actions requests in a simulation, and the callbacks that it gives away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from penstock.bounds import PAYLOAD_CAP
from penstock.client.signal_receivers import unknown_key
from penstock.client.starts import debounce_options
from penstock.errors import Conflict, InvalidInput, NotFound
from penstock.language.rules.event_rules import compile_rule, event_namespace
from penstock.language.rules.event_rules import evaluate as evaluate_rule
from penstock.language.rules.trial import SimulatedEvent
from penstock.language.schemas import Schema
from penstock.language.terms.debounce import MAX_EVENTS, Debounce
from penstock.language.terms.durations import seconds
from penstock.language.terms.event_sources import ACTION
from penstock.run.outgoing import Effect, Publish, Signal, Start
from penstock.run.sent_signal import SentSignal
from penstock.run.stored_json import stored_value
from penstock.testing.clock import Timer
from penstock.testing.request_checks import start_request
from penstock.testing.world import Call, Execution, PublishedEvent, RuleFailure, World

CALLBACKS = "https://simulation.invalid/callbacks/"
"""The beginning of the address of every callback."""


@dataclass(slots=True)
class _Burst:
    """The open burst of starts with one debounce key. Its execution has not begun."""

    execution: Execution
    options: Mapping[str, Any]
    opened_at: datetime
    timer: Timer
    starts: int = 1


class Effects:
    """The events and executions of a simulation that the code of actions requests, with their keys."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._events: dict[tuple[str, str, str], tuple[UUID, bytes]] = {}
        """The events with a key, by trigger, source and key."""
        self._published: dict[UUID, PublishedEvent] = {}
        self._starts: dict[str, tuple[UUID, bytes]] = {}
        self._bursts: dict[tuple[str, str | None], _Burst] = {}
        self._callbacks: dict[str, tuple[Execution, int]] = {}

    def check(self, request: Effect) -> None:
        """Check the target and the payload or the parameters of a request. Raises NotFound if the simulation does not
        know the target, and InvalidInput if the values do not fit its schema."""
        if isinstance(request, Signal):
            self._receiver(request)
        elif isinstance(request, Publish):
            self._payload(request)
        else:
            self._parameters(request.ref, request.params)

    def check_end(self, request: Effect) -> None:
        """Raise Conflict if a request cannot be carried out with the end of its attempt: its key belongs to a request with
        other content, or its signal has no receiver."""
        if isinstance(request, Signal):
            self._receiver(request).check_signal()
        else:
            self.existing(request)

    def carry_out(self, execution: Execution, request: Effect) -> UUID | SentSignal:
        """Carry out a request of `execution`, and return the id of the event or the execution, or the answer to the
        signal. Raises NotFound if the simulation does not know the target, and InvalidInput if the values do not fit
        its schema. Raises Conflict if the key belongs to another request, or the target cannot receive a signal."""
        if isinstance(request, Signal):
            return self._receiver(request).signal(str(request.name), request.value)
        id, root = self.existing(request), execution.root
        if isinstance(request, Publish):
            event = self.published(id) if id is not None else self.publish_keyed(request)[0]
            if event not in root.published:
                root.published.append(event)
            return event.id
        started = self._start(request) if id is None else self.execution(id)
        if started not in root.started:
            root.started.append(started)
        return started.id

    # -- events ------------------------------------------------------------------------------------------------------

    def publish(self, trigger: Any, payload: Any) -> tuple[SimulatedEvent, list[Execution]]:
        """Publish an event, and return it with the executions that rules start. Tasks that wait for it go on.

        Raises NotFound for an unknown trigger, and InvalidInput for a payload that its schema refuses.
        """
        world = self._world
        definition = world.known.trigger(trigger)
        payload = _checked_payload(world.known.payload_schema(definition), payload)
        event = SimulatedEvent(definition.ref, id=world.new_id(), created_at=world.clock.now)
        namespace = event_namespace(event, payload)
        fitting = [wait for wait in world.event_waits if wait.fits(namespace)]
        started = self._start_by_rules(event, payload)
        for wait in fitting:
            wait.complete(namespace)
        return event, started

    def _start_by_rules(self, event: SimulatedEvent, payload: Any) -> list[Execution]:
        """Start the actions of the matching rules. Keep the failure of a rule, which affects no other rule."""
        started = []
        for rule in self._world.known.rules_of(event.trigger):
            if not rule.enabled:
                continue
            match = evaluate_rule(compile_rule(rule.body()), event, payload)
            error = match.error
            if match.matched and error is None:
                try:
                    started.append(self.start(rule.action, match.params, labels=match.labels))
                except (InvalidInput, NotFound) as refusal:
                    error = f"{type(refusal).__name__}: {refusal.message}"
            if error is not None:
                self._world.rule_failures.append(RuleFailure(event.id, rule.ref, error))
        return started

    def publish_keyed(self, request: Publish, source: str = ACTION) -> tuple[PublishedEvent, list[Execution]]:
        """Publish an event with a key that is new for its source. Return it with the executions that rules start. Raises the
        errors of `publish`."""
        payload = self._payload(request)
        event, started = self.publish(request.trigger, payload)
        if request.key is not None:
            self._events[request.trigger, source, request.key] = (event.id, _canonical(payload))
        published = PublishedEvent(event.id, request.trigger, payload, request.key, event.created_at)
        self._published[event.id] = published
        return published, started

    def published(self, id: UUID) -> PublishedEvent:
        return self._published[id]

    def _payload(self, request: Publish) -> Any:
        definitions = self._world.known
        return _checked_payload(
            definitions.payload_schema(definitions.trigger(request.trigger)), request.payload
        )

    # -- executions --------------------------------------------------------------------------------------------------

    def start(
        self,
        target: Any,
        parameters: Mapping[str, Any],
        *,
        begins: bool = True,
        labels: Mapping[str, str] | None = None,
    ) -> Execution:
        """Return a new execution of an action or workflow, which begins soon, unless `begins` is False. Raises NotFound
        if the simulation does not know the target, and InvalidInput if the parameters do not fit its schema."""
        world = self._world
        ref = world.ref_of(target)
        checked = self._parameters(ref, parameters)
        execution = world.execution_of(world, Call(ref, checked, ref.rpartition(".")[2], labels=labels or {}))
        if begins:
            world.soon(execution.begin)
        for listener in world.on_start:
            listener(execution)
        return execution

    def _start(self, request: Start) -> Execution:
        parameters = self._parameters(request.ref, request.params)
        options = debounce_options(start_request(request))
        execution = self._burst(request, parameters, options) if options else None
        if execution is None:
            delay = self._delay(request)
            execution = self.start(
                request.ref, parameters, begins=not delay and options is None, labels=request.labels
            )
            if options is not None:
                self._open_burst(request, execution, options)
            elif delay:
                execution.later(delay, execution.begin)
        if request.key is not None:
            self._starts[request.key] = (execution.id, self._digest(request))
        return execution

    def _delay(self, request: Start) -> float:
        if request.at is not None:
            return max(0.0, (request.at - self._world.clock.now).total_seconds())
        return 0.0 if request.delay is None else float(seconds(request.delay))

    def _parameters(self, target: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        schema = self._world.known.schema(self._world.ref_of(target))
        checked: dict[str, Any] = _checked(schema, parameters, "parameters")
        return checked

    def _open_burst(self, request: Start, execution: Execution, options: Mapping[str, Any]) -> None:
        now, place = self._world.clock.now, (request.ref, request.debounce_key)
        timer = execution.later(self._closes_in(options, now), lambda: self._close_burst(place))
        self._bursts[place] = _Burst(execution, options, now, timer)

    def _burst(
        self, request: Start, parameters: dict[str, Any], options: Mapping[str, Any]
    ) -> Execution | None:
        """Add a start to its open burst, and return the burst's execution; None if there is none. Raises Conflict if
        the burst was begun with another `keep`."""
        place = request.ref, request.debounce_key
        burst = self._bursts.get(place)
        if burst is None or burst.execution.ended:
            return None
        if burst.options["keep"] != options["keep"]:
            raise Conflict(
                f"execution {burst.execution.id} belongs to the open burst, and this start has another keep",
                hint="Starts of one burst have the same keep, budget, bounds and timeouts. Give other starts another "
                "debounce_key.",
            )
        if options["keep"] == "last":
            burst.execution.call.parameters = parameters
        burst.starts += 1
        burst.timer.cancel()
        if burst.starts >= MAX_EVENTS:
            self._close_burst(place)
        else:
            delay = self._closes_in(options, burst.opened_at)
            burst.timer = burst.execution.later(delay, lambda: self._close_burst(place))
        return burst.execution

    def _closes_in(self, options: Mapping[str, Any], opened_at: datetime) -> float:
        at_most = options.get("at_most")
        debounce = Debounce(
            timedelta(seconds=options["seconds"]),
            None if at_most is None else timedelta(seconds=at_most),
            (),
            options["keep"],
        )
        now = self._world.clock.now
        return max(0.0, (debounce.closes_at(opened_at, now) - now).total_seconds())

    def _close_burst(self, place: tuple[str, str | None]) -> None:
        burst = self._bursts.pop(place)
        if not burst.execution.ended:
            self._world.soon(burst.execution.begin)

    def execution(self, id: UUID) -> Execution:
        """Return an execution of the simulation. Raises NotFound if none has this id."""
        for execution in self._world.executions:
            if execution.id == id:
                return execution
        raise NotFound(f"no execution {id}", hint="Give the id that `start` returned.")

    def _receiver(self, signal: Signal) -> Execution:
        """Return the execution that receives a signal. Raises NotFound."""
        if signal.execution_id is not None:
            return self.execution(signal.execution_id)
        key = str(signal.key)
        if key not in self._starts:
            raise unknown_key(key, "public")
        return self.execution(self._starts[key][0])

    # -- callbacks ---------------------------------------------------------------------------------------------------

    def callback_address(self, execution: Execution, attempt: int) -> str:
        """Return the address by which a test completes an attempt, the same at each call."""
        address = f"{CALLBACKS}{execution.id}-{attempt}"
        self._callbacks[address] = execution, attempt
        return address

    def has_callback(self, execution: Execution, attempt: int) -> bool:
        """Return whether the code of an attempt has asked for the address of its callback."""
        return f"{CALLBACKS}{execution.id}-{attempt}" in self._callbacks

    def called_back(self, address: str) -> tuple[Execution, int]:
        """Return the execution and the attempt of a callback address. Raises NotFound if no attempt has the address."""
        if address not in self._callbacks:
            raise NotFound(
                "there is no such callback", hint="Use the address that the action passed on, unchanged."
            )
        return self._callbacks[address]

    # -- keys --------------------------------------------------------------------------------------------------------

    def existing(self, request: Publish | Start, source: str = ACTION) -> UUID | None:
        """Return the id that has the key of a request from a source, or None. Raises Conflict if its content differs."""
        if request.key is None:
            return None
        if isinstance(request, Publish):
            entry = self._events.get((request.trigger, source, request.key))
            if entry is not None and entry[1] != _canonical(self._payload(request)):
                raise Conflict(
                    f"this key belongs to event {entry[0]}, which has another payload",
                    hint="Give a different event a different key.",
                )
        else:
            entry = self._starts.get(request.key)
            if entry is not None and entry[1] != self._digest(request):
                raise Conflict(
                    f"this idempotency key belongs to execution {entry[0]}, which was started with other parameters",
                    hint="Use a new key for a new request.",
                )
        return None if entry is None else entry[0]

    def _digest(self, request: Start) -> bytes:
        return _canonical([request.ref, self._parameters(request.ref, request.params)])


def _checked_payload(schema: Schema, payload: Any) -> Any:
    """Return the payload of an event as it is stored. Raises InvalidInput for one that the schema refuses."""
    return _checked(schema, {} if payload is None else payload, "payload")


def _checked(schema: Schema, value: Any, label: str) -> Any:
    """Return a value as it is stored. Raises InvalidInput, with the hint of a client, for one that the schema refuses."""
    try:
        return stored_value(schema.check(value, what=label, cap=PAYLOAD_CAP))
    except InvalidInput as error:
        error.hint = error.hint or schema.takes()
        raise


def _canonical(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
