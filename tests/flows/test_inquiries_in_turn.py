"""An execution that asks one thing after the other: each answer is to the question that was meant."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import asyncpg
import pytest

from penstock import action
from penstock.client.inquiries import answer, listed
from penstock.errors import Conflict
from penstock.run import steering
from penstock.store.session.database import Session, Transaction
from tests.flows.installation import Installation


@action(pack="ops")
async def interview() -> list[str]:
    return [await steering.ask("First?"), await steering.ask("Second?")]


ASKS = "select 1 from inquiry where execution_id = $1 and prompt = $2 and status = 'created'"


async def test_an_answer_is_to_the_question_that_was_meant(house: Installation) -> None:
    await house.start(interview)
    id = await house.client.start("ops.interview")
    await house.until(ASKS, id, "First?")
    [first] = await listed(house.session)
    await house.client.answer(id, "one", by="ada")
    await house.until(ASKS, id, "Second?")
    with pytest.raises(Conflict, match="another one is open now") as refused:
        await house.client.answer(id, "uno", by="bob", asked=first.created_at)
    assert refused.value.hint == "It asks: Second?"
    [second] = await listed(house.session)
    await house.client.answer(id, "two", by="bob", asked=second.created_at)
    assert await house.client.result(id, timeout=20) == ["one", "two"]


@pytest.mark.parametrize("meanwhile", ["nobody", "somebody"])
async def test_an_answer_whose_commit_was_lost_is_not_given_to_the_next_question(
    house: Installation, meanwhile: str
) -> None:
    await house.start(interview)
    id = await house.client.start("ops.interview")
    await house.until(ASKS, id, "First?")

    class Losing:
        """A session that has lost its first transaction before its commit, or after it, and is back once the next is asked."""

        times = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(house.client.session, name)

        @asynccontextmanager
        async def transaction(self) -> AsyncIterator[Transaction]:
            self.times += 1
            gone = asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
            try:
                async with house.client.session.transaction() as tx:
                    yield tx
                    if self.times == 1 and meanwhile == "somebody":
                        raise gone
            except asyncpg.ConnectionDoesNotExistError:
                await house.client.answer(id, "mine", by="bob")
            if self.times == 1:
                await house.until(ASKS, id, "Second?")
                raise gone

    answering = answer(cast(Session, Losing()), id, "one", "ada")
    if meanwhile == "somebody":
        with pytest.raises(Conflict, match="another one is open now"):
            await answering
    else:
        await answering
    await house.client.answer(id, "two", by="ada")
    expected = ["mine" if meanwhile == "somebody" else "one", "two"]
    assert await house.client.result(id, timeout=20) == expected
