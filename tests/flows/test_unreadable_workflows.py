"""A workflow that an executor cannot read or advance: it says so, hinders nothing else, and goes on once it can be read."""

from __future__ import annotations

import pytest

from penstock import action
from penstock.advance import open_workflows
from penstock.engine import Plan
from penstock.language.workflows import from_yaml
from penstock.language.workflows.model import Workflow
from penstock.operate.why import why
from tests.flows.installation import Installation


@action(pack="odd")
async def one() -> int:
    return 1


FLOWS = [
    from_yaml(f"""
workflow: odd.{name}
tasks:
  first: {{action: odd.one}}
  second: {{action: odd.one, needs: [first]}}
output: "{{{{ tasks.second.result }}}}"
""")
    for name in ("good", "bad")
]


async def test_one_that_cannot_be_read_says_why_it_stands(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = True

    class Picky(Plan):
        def __init__(self, workflow: Workflow, cap: int) -> None:
            if broken and workflow.ref == "odd.bad":
                raise ValueError("a word that this release does not know")
            super().__init__(workflow, cap)

    monkeypatch.setattr(open_workflows, "Plan", Picky)
    await house.start(one, *FLOWS, restage_age=1.0)
    bad = await house.client.start("odd.bad")
    good = [await house.client.start("odd.good") for _ in range(5)]
    assert [await house.client.result(id, timeout=30) for id in good] == [1] * 5
    await house.until("select 1 from dead_letter where reason like '%does not know%'")
    answer = await why(house.session, bad, house.settings())
    assert answer.because == "outage"
    assert "a word that this release does not know" in answer.says
    assert "dead-letters show" in answer.says
    broken = False
    assert await house.client.result(bad, timeout=30) == 1
    await house.sound()
