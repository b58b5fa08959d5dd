"""Re-runs with other parameters."""

from __future__ import annotations

import pytest

from penstock.errors import InvalidInput
from tests.flows import inside
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


async def test_rerun_with_changed_parameters(house: Installation) -> None:
    await house.start(*inside.ALL)
    old = await house.client.start("inside.fails", {"n": 1})
    await house.until("select 1 from execution where status = 'failed'")
    ran = await house.client.start("inside.publishes", {"n": 1, "key": "a"})
    await house.client.result(ran, timeout=20)
    new = await house.client.rerun(ran, params={"n": 7}, by="test")
    with pytest.raises(InvalidInput, match="n"):
        await house.client.rerun(ran, params={"n": "many"}, by="test")
    with pytest.raises(InvalidInput, match="unknown"):
        await house.client.rerun(ran, params={"m": 7}, by="test")
    with pytest.raises(InvalidInput, match="may have read the old parameters"):
        await house.client.rerun(old, params={"n": 7}, from_failed=True, by="test")
    await house.quiet()
    [row] = await house.rows(
        "select params::text as params, origin from payload where execution_id = $1", new
    )
    assert row["params"] == '{"n": 7, "key": "a"}'
    [command] = await house.rows(
        "select value -> 'changed' as changed from workflow_command where kind = 'rerun'"
    )
    assert command["changed"] == '["n"]'
    await house.sound()
