"""Group commit."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from penstock.store.session.group_commit import GroupCommit
from tests.shuffled_tasks import shuffled_tasks  # noqa: F401  # tasks run in a random order


class Ledger:
    """Writes numbers; refuses negative ones, alone or in a group."""

    def __init__(self) -> None:
        self.groups: list[list[int]] = []

    async def write(self, items: Sequence[int]) -> Sequence[int | Exception]:
        await asyncio.sleep(0)
        self.groups.append(list(items))
        if any(item < 0 for item in items):
            raise ValueError("negative")
        return [item * 2 for item in items]


async def test_concurrent_submits_share_a_write() -> None:
    ledger = Ledger()
    coalescer: GroupCommit[int, int] = GroupCommit(ledger.write)
    assert await asyncio.gather(*(coalescer.submit(n) for n in range(10))) == [n * 2 for n in range(10)]
    assert sorted(item for group in ledger.groups for item in group) == list(range(10))
    assert len(ledger.groups) < 5, "the first write may begin before the last caller has come"


async def test_one_after_the_other_each_is_written_at_once() -> None:
    ledger = Ledger()
    coalescer: GroupCommit[int, int] = GroupCommit(ledger.write)
    for n in range(5):
        assert await coalescer.submit(n) == n * 2
    assert ledger.groups == [[0], [1], [2], [3], [4]]


async def test_a_group_that_fails_is_split_until_the_culprit_stands_alone() -> None:
    coalescer: GroupCommit[int, int] = GroupCommit(Ledger().write)
    answers = await asyncio.gather(*(coalescer.submit(n) for n in (1, 2, -3, 4)), return_exceptions=True)
    assert [answer for answer in answers if isinstance(answer, int)] == [2, 4, 8]
    assert isinstance(answers[2], ValueError)


async def test_a_caller_that_is_cancelled_leaves_the_others_alone() -> None:
    coalescer: GroupCommit[int, int] = GroupCommit(Ledger().write)
    tasks = [asyncio.create_task(coalescer.submit(n)) for n in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    assert await tasks[0] == 0
    assert await tasks[2] == 4
    with pytest.raises(asyncio.CancelledError):
        await tasks[1]
