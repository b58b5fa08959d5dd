"""The worker protocol: what a worker in any language says to a gateway (docs/workers-in-any-language.md)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Annotated, Any, TypeVar
from uuid import UUID

from fastapi import Depends, Header, Request, Response

from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.errors import ClaimLost, DefinitionError, InvalidInput
from penstock.language.moves import CANCELLED
from penstock.language.policies.after_attempt import NOT_BEGUN, End, Ending, Unfinished
from penstock.language.terms import labels
from penstock.language.terms.routing import RoutingRule
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.progress import STREAM, Progress
from penstock.run.steering import Defer
from penstock.store.executions.log_lines import NewLine
from penstock_api.auth.access import WORK, Asked
from penstock_api.backend import Here
from penstock_api.fast_path import Call, quickly
from penstock_api.models import worker_protocol as models
from penstock_api.routes.router import Router
from penstock_api.work.definitions import OfferedAction, SchemaPart
from penstock_api.work.held_attempts import Key
from penstock_api.work.remote_worker import RemoteWorker
from penstock_api.work.sessions import NewWorker, patience

T = TypeVar("T")

router = Router("work")

SESSION_HEADER = "Penstock-Session"
LONGEST_SECRET = 200
Secret = Annotated[
    str,
    Header(
        alias=SESSION_HEADER, max_length=LONGEST_SECRET, description="The `session` of the answer to hello."
    ),
]


async def _worker(secret: Secret, backend: Here, caller: Asked) -> RemoteWorker:
    gateway = backend.gateway
    gateway.begin()
    return await gateway.sessions.find(gateway.pool, caller, secret)


async def _of_worker(call: Call) -> Mapping[str, Any] | None:
    """Return the arguments of a message of a worker."""
    secret = call.headers.get(SESSION_HEADER.lower())
    if secret is None or len(secret) > LONGEST_SECRET:
        return None
    worker = await _worker(secret, call.backend, call.caller)
    return {"body": call.document, "worker": worker, "backend": call.backend}


async def _of_waiting_worker(call: Call) -> Mapping[str, Any] | None:
    """Return the arguments of a message of a worker that waits for its answer."""
    arguments = await _of_worker(call)
    return None if arguments is None else {**arguments, "request": call.request}


Calling = Annotated[RemoteWorker, Depends(_worker)]
"""The dependency with the worker of the session that the call carries."""


@router.post("/work/hello", status_code=201, dependencies=[WORK])
async def hello(body: models.Hello, backend: Here, caller: Asked) -> models.Welcome:
    """Begin the session of a worker. Only this answer has its secret."""
    _check(body)
    gateway = backend.gateway
    gateway.begin()
    new = NewWorker(
        name=body.name,
        routes=list(dict.fromkeys(body.routes)),
        actions=[_offered(action) for action in {action.ref: action for action in body.actions}.values()],
        labels=body.labels,
        slots=body.slots,
        language=body.language,
        sdk=body.sdk,
    )
    async with gateway.pool.session() as session:
        new_session = await gateway.sessions.begin(session, caller, new)
    settings = backend.settings
    return models.Welcome(
        worker=new_session.worker.id,
        session=new_session.secret,
        beat_every=settings.heartbeat_interval,
        lost_after=patience(settings),
        wait_at_most=models.LONGEST_WAIT_S,
        batch_at_most=models.MOST_IN_BATCH,
        result_bytes=settings.payload_cap,
        differences=[models.SchemaDifference.model_validate(entry) for entry in new_session.differences],
    )


@router.post("/work/take", dependencies=[WORK])
@quickly(models.Taking, _of_waiting_worker, takes_key=False)
async def take(body: models.Taking, worker: Calling, backend: Here, request: Request) -> models.Taken:
    """Report ended attempts, and wait for new ones. While it waits, a worker without attempts needs no heartbeat."""
    ends = _ends(body.ends, backend)
    storing = asyncio.ensure_future(backend.gateway.held.finish(worker, ends)) if ends else None
    taking = backend.gateway.takes.take(
        worker, body.request, body.slots, body.wait, again=body.again, until=storing
    )
    try:
        owned = await _while_connected(request, taking)
    finally:
        settled = await storing if storing is not None else set()
    return models.Taken(
        attempts=await _deliverable(worker, backend, owned or ()),
        drain=worker.cordoned,
        lost_attempts=[execution for execution, _ in ends if execution not in settled],
    )


@router.post("/work/beat", dependencies=[WORK])
@quickly(models.Beat, _of_waiting_worker, takes_key=False)
async def beat(body: models.Beat, worker: Calling, backend: Here, request: Request) -> models.BeatAnswer:
    """Send a heartbeat with the attempts that this worker holds. The answer lists those that it has lost, and those that
    it must cancel."""
    beating = backend.gateway.beats.beat(
        worker,
        {held.execution: held.attempt for held in body.holding},
        {held.execution for held in body.holding if held.cancelling},
        drains=body.draining,
        seconds=body.wait,
    )
    answer = await _while_connected(request, beating)
    if answer is None:
        return models.BeatAnswer(lost_attempts=[], cancel=[], drain=worker.cordoned)
    return models.BeatAnswer(
        lost_attempts=list(answer.lost_attempts), cancel=list(answer.cancel), drain=answer.drain
    )


@router.post("/work/log", dependencies=[WORK])
@quickly(models.NewLogLines, _of_worker, takes_key=False)
async def log(body: models.NewLogLines, worker: Calling, backend: Here) -> models.LostAttempts:
    """Store lines that attempts of this worker have written. A line that is sent twice is stored once."""
    lines = [NewLine(line.execution, line.attempt, line.seq, line.stream, line.line) for line in body.lines]
    return await _stored(backend, worker, lines)


@router.post("/work/progress", dependencies=[WORK])
@quickly(models.ProgressReports, _of_worker, takes_key=False)
async def progress(body: models.ProgressReports, worker: Calling, backend: Here) -> models.LostAttempts:
    """Store the progress of attempts of this worker."""
    lines = [
        NewLine(
            report.execution, report.attempt, report.seq, STREAM, Progress(report.done, report.text).line()
        )
        for report in body.reports
    ]
    return await _stored(backend, worker, lines)


@router.post("/work/finish", dependencies=[WORK])
@quickly(models.Ends, _of_worker, takes_key=False)
async def finish(body: models.Ends, worker: Calling, backend: Here) -> models.LostAttempts:
    """Report the ends of attempts of this worker. An end that is sent twice is stored once."""
    ends = _ends(body.ends, backend)
    settled = await backend.gateway.held.finish(worker, ends)
    return _lost([execution for execution, _ in ends if execution not in settled], len(ends))


@router.post("/work/bye", status_code=204, dependencies=[WORK])
async def bye(secret: Secret, worker: Calling, backend: Here) -> Response:
    """End the session. Attempts that the worker still holds are soon given to other workers."""
    gateway = backend.gateway
    async with gateway.pool.session() as session:
        await gateway.sessions.end(session, worker, secret)
    return Response(status_code=204)


async def _stored(backend: Here, worker: RemoteWorker, lines: Sequence[NewLine]) -> models.LostAttempts:
    stale = await backend.gateway.held.add_lines(worker, lines)
    return _lost(stale, len({line.execution_id for line in lines}))


def _ends(ends: Sequence[models.End], backend: Here) -> dict[Key, End]:
    """Return the ends of a message. Raises InvalidInput if two of them name the same execution, or an end is not
    valid."""
    limit = backend.gateway.held.references.limit
    reported: dict[Key, End] = {(end.execution, end.attempt): _end(end, limit) for end in ends}
    if len({end.execution for end in ends}) < len(ends):
        raise InvalidInput(
            "the request reports two ends of the same execution", hint="Report the end of each attempt once."
        )
    return reported


def _lost(stale: Sequence[UUID], named: int) -> models.LostAttempts:
    """Return the answer to a write. Raises ClaimLost if the worker owns none of the attempts."""
    if len(stale) == named:
        raise ClaimLost(
            f"the attempt of {', '.join(map(str, stale[:5]))} is no longer this worker's",
            hint="End it without a report: another worker has it, or it has ended. Nothing was stored.",
        )
    return models.LostAttempts(lost_attempts=list(stale))


def _offered(action: models.OfferedAction) -> OfferedAction:
    schemas: dict[SchemaPart, dict[str, Any]] = {}
    if action.parameters is not None:
        schemas["parameters"] = action.parameters
    if action.result is not None:
        schemas["result"] = action.result
    return OfferedAction(action.ref, schemas)


def _check(hello: models.Hello) -> None:
    """Raise InvalidInput if a route or a label is malformed."""
    try:
        for route in hello.routes:
            RoutingRule("**", route)
        for name, value in hello.labels.items():
            labels.check_label(name, value)
    except DefinitionError as error:
        raise InvalidInput(error.message, hint=error.hint) from None
    except ValueError as error:
        raise InvalidInput(str(error), hint='Write labels as {"gpu": "a100"}.') from None


async def _deliverable(
    worker: RemoteWorker, backend: Here, owned: Sequence[OwnedAttempt]
) -> list[models.TakenAttempt]:
    """Return the attempts as the worker gets them. An attempt that cannot be written down ends as failed, alone."""
    answers: list[models.TakenAttempt] = []
    failed: list[tuple[OwnedAttempt, Exception]] = []
    for attempt in owned:
        try:
            answers.append(_taken(attempt))
        except Exception as error:
            failed.append((attempt, _unsendable(error)))
    await backend.gateway.held.fail(worker, failed)
    return answers


def _unsendable(error: Exception) -> InvalidInput:
    return InvalidInput(
        f"what this execution carries over cannot be sent to a worker of a gateway: {type(error).__name__}: {error}",
        hint="Start the execution again. The attempt before this one deferred it with a `carry` of a wrong form.",
    )


def _taken(owned: OwnedAttempt) -> models.TakenAttempt:
    event = owned.event
    return models.TakenAttempt(
        execution=event.execution_id,
        attempt=event.attempt,
        max_attempts=event.max_attempts,
        action=event.action,
        tenant=event.namespace.partition("::")[0],
        namespace=event.namespace,
        parameters=dict(owned.params),
        context=dict(owned.context),
        state=owned.carry.get("state"),
        answers=list(owned.carry.get("answers", ())),
        carry=dict(owned.carry),
        secrets=dict(owned.named_secrets),
        timeout=owned.version.timeout,
        workflow=event.workflow,
        root=event.root,
        task=event.task,
        waited=owned.waited,
        trace=dict(owned.traced.carrier) if owned.traced is not None else {},
    )


def _end(end: models.End, limit: int) -> End:
    match end.outcome:
        case "completed":
            return Outcome.returned(end.result, limit)
        case "failed":
            return Outcome.failed(_error(end.error))
        case "timed_out":
            message = end.error.message if end.error else "the attempt took longer than its time"
            return Outcome("timed_out", error=TaskError("TimeoutError", message))
        case "deferred":
            if (end.delay is None) == (end.until is None):
                raise InvalidInput(
                    "a deferred attempt has either `delay` or `until`", hint="Send exactly one of them."
                )
            deferral = Defer(delay=end.delay, until=end.until, state=end.state)
            if end.carry is not None:
                deferral.carry = end.carry
            return Outcome.raised(deferral, limit=limit)
        case "cancelled":
            return Ending(CANCELLED)
        case "handed_back":
            return Unfinished() if end.started else NOT_BEGUN


def _error(error: models.ActionError | None) -> TaskError:
    if error is None:
        return TaskError("Error", "the worker sent no error")
    return TaskError(
        error.type,
        error.message,
        error.traceback,
        retryable=error.retryable,
        retry_after=error.retry_after,
        kinds=tuple(error.kinds),
        members=tuple(tuple(kinds) for kinds in error.members),
        answer=error.answer,
    )


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """Return the result of `work`, or None if the caller closes the connection before."""
    calling = asyncio.current_task()
    assert calling is not None
    works = True

    def stop(gone: asyncio.Future[None]) -> None:
        if works and not gone.cancelled():
            calling.cancel()

    gone = asyncio.ensure_future(_disconnected(request))
    gone.add_done_callback(stop)
    try:
        return await work
    except asyncio.CancelledError:
        if gone.done() and not calling.uncancel():
            return None
        raise
    finally:
        works = False
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
