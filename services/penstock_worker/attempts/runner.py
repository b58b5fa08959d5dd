"""The runner of a worker, which runs claimed attempts, and passes their ends to the backend."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any
from uuid import UUID

import structlog

from penstock.attempts.owned_attempt import OwnedAttempt, share_secrets
from penstock.errors import ClaimLost, NoCapacity
from penstock.language.moves import CANCELLED, REQUESTED
from penstock.language.policies.after_attempt import NOT_BEGUN, Ending, Unfinished
from penstock.language.schemas.question_schema import with_checked_question
from penstock.messaging.metrics import Metrics
from penstock.run.run import executor_name
from penstock.run.run_log import RunLog
from penstock.run.task_executors import Outcome, Run, TaskExecutor, attempt
from penstock.service.explain_errors import explained
from penstock.settings import Settings
from penstock_worker.attempts.batch_call import BatchCall
from penstock_worker.executors import chosen
from penstock_worker.records.backend import NO_COSTS, Backend
from penstock_worker.records.batches import ItemBatch
from penstock_worker.records.worker_state import Running, WorkerState

log = structlog.get_logger()

WRITTEN = 5.0
"""The seconds for writing the ends of stopped attempts, in addition to their grace."""


class Runner:
    """The runner of a worker. It runs at most as many attempts at a time as it has slots."""

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        executors: Mapping[str, TaskExecutor],
        state: WorkerState,
        backend: Backend,
    ) -> None:
        self._settings = settings
        self._times = cache(metrics.run_seconds.labels)  # looking up a label takes longer than counting
        self._sizes = metrics.action_batch_items.labels
        self._executors = executors
        self._backend = backend
        self._inbox = state.inbox
        self._room = state.room
        self._batches = state.batches
        self._batches.call = self._call
        self._awaited: dict[UUID, asyncio.Future[BatchCall]] = {}
        """The calls of the batches of the items that wait, by item."""
        self._own_task: asyncio.Task[Any] | None = None
        self.slots = state.slots
        self.running = state.running
        self._earlier: list[Running] = []
        """Attempts that have not stopped yet although the next attempt of their execution has arrived."""

    async def run(self) -> None:
        """Start the attempts that arrive in the inbox."""
        self._own_task = asyncio.current_task()
        while True:
            await self._inbox.wait()
            self._begin_arrived()

    def _begin_arrived(self) -> None:
        for owned in self._inbox.take_all():
            self._start(owned)

    # -- the run of an attempt -----------------------------------------------------------------------------------

    def _start(self, owned: OwnedAttempt) -> None:
        id, executor = owned.event.execution_id, executor_name(owned.version.action, owned.of_route)
        if (earlier := self.running.get(id)) is not None:
            # The database gives an execution another attempt only once this worker has lost the one before.
            self._earlier.append(earlier)
            self._lose(earlier, confirmed=True)
        task = asyncio.create_task(self._run(owned))
        self.running[id] = Running(owned, task, is_durable=getattr(owned.version.action, "durable", False))
        task.add_done_callback(lambda task: self._ended(owned, executor, task))

    def _ended(self, owned: OwnedAttempt, executor: str, task: asyncio.Task[None]) -> None:
        """Clean up after the asyncio task of an attempt. If the task was cancelled before its first step, it has run no
        code, so the attempt is reported here. If an error of this worker ended the task, the attempt has failed, and is
        also reported here."""
        error = None if task.cancelled() else task.exception()
        if self._running_of(owned) is not None:
            if error is None:
                self._stopped(owned)
            else:
                log.error("worker.attempt_broke", execution_id=str(owned.event.execution_id), exc_info=error)
                self._failed(owned, error)
        if owned.version.batch is None:
            self._room.take_back(executor)
        else:
            self._batches.leave(owned)
        self._backend.has_room()

    def _running_of(self, owned: OwnedAttempt) -> Running | None:
        """Return what is known of an attempt that runs; None: it has ended."""
        latest = self.running.get(owned.event.execution_id)
        if latest is not None and latest.attempt is owned:
            return latest
        return next((running for running in self._earlier if running.attempt is owned), None)

    def _forget(self, owned: OwnedAttempt) -> Running | None:
        """Remove an attempt that has ended, and return what was known of it."""
        running = self._running_of(owned)
        if running in self._earlier:
            self._earlier.remove(running)
        elif running is not None:
            del self.running[owned.event.execution_id]
        return running

    async def _run(self, owned: OwnedAttempt) -> None:
        event, version = owned.event, owned.version
        if self._backend.is_incomplete(owned) and not await self._complete(owned):
            return
        requests = self._backend.requests(owned)
        run = Run(
            event=event,
            params=owned.params,
            action=version.action,
            log=RunLog(
                lambda stream, line: self._backend.add_line(owned, stream, line),
                conceal=lambda text: self._backend.conceal_line(owned, text),
            ),
            timeout=version.timeout,
            grace=self._settings.grace,
            carry=owned.carry,
            context=owned.context,
            result_limit=self._backend.result_limit,
            durable=self._backend.durable(owned),
            trace=owned.traced.carrier if owned.traced is not None else {},
            outgoing=requests.outgoing(),
            secrets=owned.named_secrets,
            api_address=self._settings.api_address,
            token=owned.token,
        )
        running = self._running_of(owned)
        assert running is not None, "an attempt that runs"
        call: BatchCall | None = None
        try:
            if version.batch is None:
                running.is_executing, running.costs = True, run.costs
            elif (call := await self._join(owned, run)) is None:
                return
            began = time.monotonic()
            with owned.traced.begin() if owned.traced is not None else contextlib.nullcontext():
                outcome = await (self._execute(run, owned.of_route) if call is None else call.outcome_of(run))
                if outcome.costs:
                    run.costs.update(outcome.costs)
                outcome = await self._put_away(owned, running, with_checked_question(outcome))
        except asyncio.CancelledError:
            self._stopped(owned)
            return
        except ClaimLost:  # a durable function noticed the loss when it recorded a step
            self._forget(owned)
            self._backend.discard(owned, known_to_be_lost=True)
            return
        except NoCapacity as full:  # the executor had reported room before the claim
            self._forget(owned)
            self._backend.end(owned, Ending(REQUESTED, delay=1.0, reason=full.message))
            return
        finally:
            requests.close()
        seconds = time.monotonic() - began
        if call is None:  # the duration of a batch's call says nothing about one item
            self._backend.took(owned, seconds)
        self._times(event.action).observe(seconds)
        self._finished(owned, outcome)

    async def _put_away(self, owned: OwnedAttempt, running: Running, outcome: Outcome) -> Outcome:
        """Return an outcome as it is stored. The end of the run may be requested while the result is written to the
        result store. A durable function that has ended by itself then keeps its outcome: it completes, or its next
        attempt undoes the run."""
        if not running.is_durable:
            return await self._backend.put_away(owned, outcome)
        putting = asyncio.ensure_future(self._backend.put_away(owned, outcome))
        try:
            return await asyncio.shield(putting)
        except asyncio.CancelledError:
            if not running.cancelled or running.claim_lost:
                putting.cancel()
                raise
        try:
            return await putting
        finally:
            putting.cancel()

    def _finished(self, owned: OwnedAttempt, outcome: Outcome) -> None:
        """Report the outcome of an attempt that ended by itself."""
        running = self._forget(owned)
        if running is not None and running.claim_lost:
            self._backend.discard(owned, known_to_be_lost=running.known_to_be_lost)
        else:
            self._backend.end(owned, outcome, running.costs if running is not None else NO_COSTS)

    async def _complete(self, owned: OwnedAttempt) -> bool:
        """Add to an attempt what it refers to. If that fails, end the attempt and return False."""
        try:
            await self._backend.complete(owned)
            return True
        except asyncio.CancelledError:
            self._stopped(owned)
        except Exception as error:
            self._failed(owned, error)
        return False

    def _failed(self, owned: OwnedAttempt, error: BaseException) -> None:
        """Report an attempt that failed with an error outside of its executor."""
        reported = explained(error) if isinstance(error, Exception) else error
        self._finished(owned, self._backend.concealed(owned, Outcome.failed(reported)))

    @property
    def _is_shut_down(self) -> bool:
        """Return whether the worker's event loop is ending, which cancels all of its tasks."""
        return self._own_task is not None and (self._own_task.done() or self._own_task.cancelling() > 0)

    def _stopped(self, owned: OwnedAttempt) -> None:
        """Report an attempt that this worker stopped. If the attempt's own code cancelled its task, the attempt has
        failed: handed back, it would run again without being counted."""
        running = self._running_of(owned)
        assert running is not None, "an attempt that runs"
        if not (running.is_stopped or self._is_shut_down):
            self._failed(
                owned, asyncio.CancelledError("the code of the action cancelled its own asyncio task")
            )
            return
        self._forget(owned)
        if running.claim_lost:
            self._backend.discard(owned, known_to_be_lost=running.known_to_be_lost)
        elif (
            running.cancelled and running.is_durable and not running.is_executing and owned.event.attempt > 1
        ):
            # The next attempt undoes what earlier attempts of the function did.
            self._backend.end(owned, NOT_BEGUN)
        elif running.cancelled:
            self._backend.end(owned, Ending(CANCELLED), running.costs)
        elif running.is_executing:  # the worker is draining, or has given the attempt up
            self._backend.end(owned, Unfinished(running.given_up), running.costs)
        else:
            self._backend.end(owned, NOT_BEGUN)

    # -- calls for batches ---------------------------------------------------------------------------------------

    async def _join(self, owned: OwnedAttempt, run: Run) -> BatchCall | None:
        """Wait until the function of an attempt is called with its batch, and return the call. None: the parameters do not fit
        the function, and the attempt has ended."""
        id = owned.event.execution_id
        try:
            run.input = owned.version.action.bind(run.params)["input"]
        except Exception as error:  # binding the parameters would fail in each later attempt too
            refused = Outcome.raised(error, retryable=False, limit=run.result_limit)
            self._finished(owned, self._backend.concealed(owned, refused))
            return None
        call: asyncio.Future[BatchCall] = asyncio.get_running_loop().create_future()
        self._awaited[id] = call
        try:
            self._batches.ready(owned, run)
            return await call
        except asyncio.CancelledError:
            if call.done() and not call.cancelled():  # the call has begun, and the item leaves it
                await call.result().leave(run)
            raise
        finally:
            if self._awaited.get(id) is call:
                del self._awaited[id]

    def _call(self, batch: ItemBatch) -> None:
        """Call the function of a batch, without the items that were asked to end meanwhile."""
        owned = {id: item for id, item in sorted(batch.members.items()) if self._may_begin(item)}
        if not owned:
            self._batches.over(batch)
            return
        share_secrets(list(owned.values()))
        first, *further = owned.values()
        run = Run(
            event=first.event,
            params={},
            action=first.version.action,
            log=RunLog(
                self._line_writer(first, further),
                conceal=lambda text: self._backend.conceal_line(first, text),
            ),
            timeout=first.version.timeout,
            grace=self._settings.grace,
            result_limit=self._backend.result_limit,
            items=[batch.ready[id] for id in owned],
        )
        call = BatchCall(run, self._execute(run, first.of_route))
        call.task.add_done_callback(lambda _: self._batches.over(batch))
        self._sizes(batch.ref).observe(len(owned))
        for id in owned:
            running = self.running[id]
            running.is_executing, running.costs = True, batch.ready[id].costs
            self._awaited[id].set_result(call)

    def _may_begin(self, owned: OwnedAttempt) -> bool:
        """Return whether an item still waits for its call, and its end was not requested."""
        running = self.running.get(owned.event.execution_id)
        return running is not None and running.attempt is owned and running.may_begin

    async def _execute(self, run: Run, of_route: str | None) -> Outcome:
        return await attempt(chosen(self._executors, run.action, of_route), run)

    def _line_writer(
        self, first: OwnedAttempt, further: Sequence[OwnedAttempt]
    ) -> Callable[[str, str], None]:
        """Return a writer of lines that belong to no single item. They go to the log of the first item, to which the logs of the
        further items refer."""
        where = f"the output of its batch of {len(further) + 1} is in the log of {first.event.execution_id}"
        unreferred = list(further)

        def write(stream: str, line: str) -> None:
            self._backend.add_line(first, stream, line)
            while unreferred:
                self._backend.add_line(unreferred.pop(), "log", where)

        return write

    # -- requests to end attempts --------------------------------------------------------------------------------

    def cancel(self, ids: Sequence[UUID]) -> None:
        """End the cancelled executions among `ids` that run here."""
        self._begin_arrived()
        for id in ids:
            running = self.running.get(id)
            if running is not None and not running.cancelled:
                running.cancelled = True
                running.stop()

    def end_clean_up(self, ids: Sequence[UUID]) -> None:
        """End the durable functions among `ids` that run here at once, because their end was requested once more. The worker
        can learn of both requests at the same time, before the function has begun to clean up."""
        self._begin_arrived()
        for id in ids:
            running = self.running.get(id)
            if running is not None and running.is_durable and not running.ends_at_once:
                running.cancelled = running.ends_at_once = True
                running.stop()

    def lose(self, attempts: Mapping[UUID, int], *, confirmed: bool) -> None:
        """End attempts (execution to number) with claims that are lost, or may be, without a report. `confirmed`: the
        database confirmed the loss."""
        self._begin_arrived()
        for id, number in attempts.items():
            running = self.running.get(id)
            if running is not None and running.attempt.event.attempt == number:
                self._lose(running, confirmed=confirmed)

    def _lose(self, running: Running, *, confirmed: bool) -> None:
        if running.claim_lost:
            return
        running.claim_lost, running.known_to_be_lost = True, confirmed
        running.stop()
        event = running.attempt.event
        log.warning("worker.claim_lost", execution_id=str(event.execution_id), attempt=event.attempt)

    def give_up(self, why: str) -> None:
        """End all attempts, and hand them back once the database can be reached. An attempt that another worker has
        taken meanwhile stays with that worker."""
        self._begin_arrived()
        for running in self.running.values():
            if running.given_up is None:
                running.given_up = why
                running.stop()

    # -- the end of the worker -----------------------------------------------------------------------------------

    def stop(self) -> None:
        """Take no more work, and call the functions of waiting batches."""
        self._backend.stop()
        self._batches.drain()

    async def drain(self, grace: float, at_once: asyncio.Event) -> None:
        """Let running attempts finish within `grace` seconds, and give up the others. A given-up attempt that has begun
        and must run at most once fails. All other given-up attempts are handed back."""
        await self._backend.close()
        waits = [asyncio.ensure_future(self._nothing_left()), asyncio.ensure_future(at_once.wait())]
        await asyncio.wait(waits, timeout=grace, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        self._backend.give_up_claims()
        self._begin_arrived()
        for running in list(self.running.values()):
            running.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.grace + WRITTEN):
                await self.slots.all_free()
                await self._backend.reported()

    async def _nothing_left(self) -> None:
        await self._backend.claimed()
        await self.slots.all_free()
