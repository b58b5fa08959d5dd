"""The ends of a worker that calls a gateway: with the next take while there is more work, and else in calls of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

from penstock import action
from penstock.attempts.owned_attempt import OwnedAttempt
from penstock.messaging.metrics import Metrics
from penstock.run.outcomes import Outcome
from penstock_worker.gateway.gateway_backend import GatewayBackend
from penstock_worker.gateway.gateway_client import GatewayClient
from penstock_worker.gateway.gateway_session import GatewaySession
from penstock_worker.records.worker_state import WorkerState
from tests.penstock_worker.gateway.stub_gateway import Json, StubGateway, stub_gateway

SLOTS = 2


@action(pack="gate")
async def counted() -> int:
    return 1


def document(execution: UUID, attempt: int = 1) -> Json:
    return {
        "execution": str(execution),
        "attempt": attempt,
        "max_attempts": 3,
        "action": "gate.counted",
        "namespace": "public::gate::counted",
        "root": str(execution),
        "workflow": None,
        "task": None,
        "timeout": None,
        "parameters": {},
        "secrets": {},
        "carry": {},
        "context": {},
        "waited": 0.0,
    }


class Worker:
    """A backend with a stub gateway, whose attempts a test ends."""

    def __init__(self, stub: StubGateway, backend: GatewayBackend, state: WorkerState) -> None:
        self.stub = stub
        self.backend = backend
        self.state = state

    async def begun(self, count: int) -> list[OwnedAttempt]:
        """Wait until so many attempts have begun."""
        owned: list[OwnedAttempt] = []
        async with asyncio.timeout(20):
            while len(owned) < count:
                owned += self.state.inbox.take_all()
                await asyncio.sleep(0.005)
        return owned

    def end(self, *attempts: OwnedAttempt) -> None:
        for owned in attempts:
            self.backend.end(owned, Outcome.returned(1, 1000), {})

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.005)


@asynccontextmanager
async def working(take: Callable[[Json], Json], **answers: Callable[[Json], Json]) -> AsyncIterator[Worker]:
    with stub_gateway(take=take, **answers) as stub:
        client = GatewayClient([stub.address], "token")
        state = WorkerState.of({}, SLOTS)

        async def no_session() -> GatewaySession:
            raise AssertionError("the session has not ended")

        backend = GatewayBackend(
            client,
            GatewaySession(uuid4(), "secret", 10.0, 50.0, 1.0, 10_000),
            {"gate.counted": counted}.get,
            state,
            Metrics(),
            route="gate",
            of_route=None,
            own_secrets=(),
            patience=1.0,
            say_hello=no_session,
        )
        taking = asyncio.create_task(backend.take())
        try:
            yield Worker(stub, backend, state)
        finally:
            backend.stop()
            async with asyncio.timeout(20):
                await taking
                await backend.reported()
            await client.close()


def taken(*documents: Json, **fields: Any) -> Json:
    return {"attempts": list(documents), "drain": False, **fields}


def full_first(later: Callable[[Json], Json]) -> Callable[[Json], Json]:
    """Return answers to takes: as many attempts as there are slots to the first one, and then those of `later`."""
    is_first = True

    def answer(message: Json) -> Json:
        nonlocal is_first
        if is_first:
            is_first = False
            return taken(*(document(uuid4()) for _ in range(message["slots"])))
        return later(message)

    return answer


async def test_ends_go_with_the_next_take_while_there_is_more_work() -> None:
    more = uuid4()
    answers = full_first(lambda message: taken(*([document(more)] if message.get("ends") else []), lost=[]))
    async with working(answers) as worker:
        attempts = await worker.begun(SLOTS)
        worker.end(*attempts)
        [arrived] = await worker.begun(1)
        assert arrived.event.execution_id == more
        [message] = [message for message in worker.stub.messages("take") if message.get("ends")]
        assert message["slots"] == SLOTS
        assert {end["execution"] for end in message["ends"]} == {
            str(owned.event.execution_id) for owned in attempts
        }
        assert dict(worker.state.slots.held()) == {more: 1}
        assert worker.backend.lost == 0
        assert not worker.stub.messages("finish")


async def test_ends_are_sent_again_if_the_gateway_is_of_an_earlier_version() -> None:
    """Such a gateway ignores the field that it does not know, and its answer has no `lost`."""
    answers = full_first(lambda _: taken())
    async with working(answers, finish=lambda _: {"lost": []}) as worker:
        attempts = await worker.begun(SLOTS)
        worker.end(*attempts)
        await worker.until(lambda: not worker.state.slots.held())
        sent = [end["execution"] for message in worker.stub.messages("finish") for end in message["ends"]]
        assert sorted(sent) == sorted(str(owned.event.execution_id) for owned in attempts)


async def test_ends_have_their_own_call_while_a_take_waits() -> None:
    first = uuid4()
    is_first = True

    def answer(message: Json) -> Json:
        nonlocal is_first
        documents, is_first = [document(first)] if is_first else [], False
        return taken(*documents, lost=[])

    async with working(answer, finish=lambda _: {"lost": []}) as worker:
        worker.end(*await worker.begun(1))
        await worker.until(lambda: not worker.state.slots.held())
        assert len(worker.stub.messages("finish")) == 1


async def test_execution_that_comes_again_with_the_answer_keeps_its_slot() -> None:
    def retried(message: Json) -> Json:
        ends = message.get("ends", [])
        again = [document(UUID(end["execution"]), 2) for end in ends if end["attempt"] == 1]
        return taken(*again, lost=[])

    async with working(full_first(retried), finish=lambda _: {"lost": []}) as worker:
        worker.end(*await worker.begun(SLOTS))
        attempts = await worker.begun(SLOTS)
        assert [owned.event.attempt for owned in attempts] == [2, 2]
        await worker.backend.reported()
        assert dict(worker.state.slots.held()) == {owned.event.execution_id: 2 for owned in attempts}


async def test_lost_attempts_of_a_take_are_counted() -> None:
    def lost(message: Json) -> Json:
        return taken(lost=[end["execution"] for end in message.get("ends", [])][:1])

    async with working(full_first(lost)) as worker:
        worker.end(*await worker.begun(SLOTS))
        await worker.until(lambda: not worker.state.slots.held())
        await worker.backend.reported()
        assert worker.backend.lost == 1
