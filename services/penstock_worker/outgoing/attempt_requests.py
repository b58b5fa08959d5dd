"""The requests of one attempt. They are checked, and then carried out at once or stored with the attempt's end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.attempts.secret_masking import passed_on
from penstock.errors import ClaimLost, InvalidInput
from penstock.language.definitions.action import Action
from penstock.language.terms.redaction import cleaned
from penstock.run.outgoing import AwaitResult, Callback, Effect, LoopOutgoing, Publish, Request, Signal
from penstock.store.executions.result_watch import ResultWatch
from penstock_worker.outgoing.writer import EffectWriter

MOST_EFFECTS = 1000
"""The most transactional requests of one attempt. They share the transaction of its end with other attempts."""


class AttemptRequests:
    """The requests of one attempt. `watch` waits for the results of executions."""

    def __init__(self, owned: OwnedAttempt, writer: EffectWriter, watch: ResultWatch) -> None:
        self._owned = owned
        self._writer = writer
        self._watch = watch
        self._is_over = False

    def outgoing(self) -> LoopOutgoing:
        """Return the way to these requests, for the code of the attempt."""
        return LoopOutgoing(self.carry_out)

    def close(self) -> None:
        """Refuse further requests: the attempt is over. A thread of the action may go on."""
        self._is_over = True

    async def carry_out(self, request: Request) -> Any:
        """Carry out a request of the attempt, and return its answer."""
        if self._is_over:
            raise ClaimLost(
                f"attempt {self._owned.event.attempt} of {self._owned.event.execution_id} is over",
                hint="Before the action returns, wait for its threads and tasks that publish, start or signal.",
            )
        if isinstance(request, AwaitResult):
            return await self._watch.result_of_child(request.execution_id, request.ref, request.timeout)
        if isinstance(request, Callback):
            return await self._writer.callback(self._owned.event)
        if request.transactional:
            await self._keep(request)
            return None
        return await self._writer.write(
            await self._writer.checked(self._owned.event, self._concealed(request))
        )

    async def _keep(self, request: Effect) -> None:
        """Keep a request for the end of the attempt. It is checked now, so that the code gets the error."""
        action = self._owned.version.action
        if isinstance(action, Action) and action.durable:
            raise InvalidInput(
                "a durable function cannot use transactional requests, because its body is replayed several times",
                hint="Publish and start in a step with a key, and signal in a step.",
            )
        if len(self._owned.effects) >= MOST_EFFECTS:
            raise InvalidInput(
                f"an attempt keeps at most {MOST_EFFECTS} transactional requests",
                hint="Start a workflow with one task for each item instead.",
            )
        effect = await self._writer.checked(self._owned.event, self._concealed(request))
        self._owned.effects.append(effect)

    def _concealed(self, request: Effect) -> Effect:
        """Return a request without stored secrets. In a start they become references, and in an event or a signal
        they are masked."""
        owned = self._owned
        if not owned.of_store:
            return request
        if isinstance(request, Publish):
            return replace(request, payload=cleaned(request.payload, owned.of_store))
        if isinstance(request, Signal):
            return replace(request, value=cleaned(request.value, owned.of_store))
        return replace(request, params=passed_on(request.params, owned.store_names, owned.of_store))
