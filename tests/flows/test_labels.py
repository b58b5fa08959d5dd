"""Actions that ask for labels run on workers that carry them, and wait for such a worker where there is none."""

from __future__ import annotations

import pytest

from penstock import Limit, action
from penstock.operate.doctor import installation
from tests.flows.installation import Installation

pytestmark = pytest.mark.either_transport


@action(pack="labels", labels={"gpu": "a100"})
async def train() -> str:
    return "trained"


@action(pack="labels")
async def anything() -> str:
    return "done"


@action(pack="labels", labels={"gpu": "a100"}, limits=Limit(1))
async def one_by_one() -> str:
    return "done"


async def test_work_waits_for_a_worker_that_carries_its_labels(house: Installation) -> None:
    await house.start(train, anything, labels="zone=eu,gpu=t4")
    waits = await house.client.start("labels.train")
    assert await house.client.run("labels.anything", timeout=20) == "done"
    await house.until("select 1 from execution where id = $1 and status = 'scheduled'", waits)
    findings = await installation.findings(house.session, house.settings())
    [finding] = [finding_row for finding_row in findings if finding_row.what == "work.default"]
    assert "carries gpu=a100" in finding.says
    assert "--labels gpu=a100" in (finding.fix or "")
    await house.worker(train, anything, labels="zone=us,gpu=a100")
    assert await house.client.result(waits, timeout=20) == "trained"
    rows = await house.rows("select failures, attempt from execution where id = $1", waits)
    assert [tuple(row) for row in rows] == [(0, 1)]


async def test_work_that_waits_for_a_labelled_worker_holds_no_slot(house: Installation) -> None:
    await house.start(one_by_one)
    waits = await house.client.start("labels.one_by_one")
    await house.until("select 1 from lane where gate_kind = 'worker'")
    assert await house.rows("select from slot") == []
    await house.worker(one_by_one, labels="gpu=a100")
    assert await house.client.result(waits, timeout=20) == "done"
