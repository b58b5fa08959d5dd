"""The steps of a durable function for display: deadlines that passed are no failures."""

from __future__ import annotations

import pytest

from penstock.operate.durable_steps import TIMED_OUT, status_for_people, steps_of
from tests.flows.installation import Installation
from tests.penstock.operate import deadlines

pytestmark = pytest.mark.either_transport


async def test_passed_deadlines_are_timeouts_and_the_rest_fails(house: Installation) -> None:
    await house.start(*deadlines.ALL)
    id = await house.client.start("deadlines.waits")
    assert await house.client.result(id, timeout=30) == "over"
    await house.quiet()
    for archived in (False, True):
        steps = {step.label: step for step in await steps_of(house.session, id)}
        assert {label: step.status for label, step in steps.items()} == deadlines.STATUSES, archived
        shown = {label for label, step in steps.items() if status_for_people(step) == TIMED_OUT}
        assert shown == deadlines.PLANNED
        await house.rows("select * from archive_finished(interval '0', 100)")
    assert not await house.rows("select 1 from execution")
