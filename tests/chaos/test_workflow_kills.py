"""kill -9 of an executor before and after every commit of the handlers that advance a workflow, one commit after the other,
beside another replica or alone: each task ran once, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.crash import shapes
from tests.crash.dying import nursery
from tests.flows.installation import Installation


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("replicas", [0, 1])
async def test_killed_around_every_commit_nothing_is_lost_and_nothing_is_done_twice(
    make_house: Callable[..., Installation], when: str, replicas: int
) -> None:
    async with make_house(**shapes.SOON) as house, nursery() as forking:
        await house.apply(*shapes.ALL)
        await house.worker(*shapes.ALL)
        for _ in range(replicas):
            await house.executor()
        number, missed = 0, 0
        while missed < 1 + 2 * replicas:  # another replica may have made the commit in its place
            number += 1
            assert number < shapes.LAST
            missed = 0 if await shapes.killed(house, forking, when, number) else missed + 1
        assert number > 4 or replicas
        await house.executor()
        await house.quiet()
        await shapes.each_ran_once(house, number)
