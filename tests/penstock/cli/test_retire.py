"""`penstock retire`: nothing new begins, and what runs goes on."""

from __future__ import annotations

import asyncio

from penstock import Route, Rule, Trigger, action
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="old")
async def linger(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "done"


happened = Trigger("old.happened")
listens = Rule("old.listens", trigger=happened, action=linger)
lingering = from_yaml("""
workflow: old.lingering
tasks:
  first: {action: old.linger, input: {seconds: 0.5}}
  second: {action: old.linger, needs: [first]}
""")


async def test_a_retired_definition_starts_no_runs_and_running_ones_go_on(house: Installation) -> None:
    await house.start(linger, lingering, happened)
    begun = await house.client.start("old.lingering")
    await house.until("select 1 from execution where task = 'first' and status = 'running'")
    said = await penstock("retire", "old.lingering")
    assert "Workflow old.lingering is retired." in said.out
    changes = await house.apply(
        linger, lingering, happened, Route("far::*", "far")
    )  # everything is placed anew
    assert {change.ref: change.what for change in changes} == {
        "old.linger": "unchanged",
        "old.lingering": "retired",
        "old.happened": "unchanged",
        "far::*": "new",
    }
    refused = await penstock("run", "old.lingering")
    assert (refused.code, "old.lingering is retired" in refused.err) == (1, True)
    assert "penstock retire --undo old.lingering" in refused.err
    assert await house.client.result(begun, timeout=20) is None
    assert (await penstock("retire", "old.happened", "--json")).document == {
        "ref": "old.happened",
        "kinds": ["trigger"],
        "is": "retired",
    }
    assert "old.happened is retired" in (await penstock("publish", "old.happened")).err
    assert "in use again" in (await penstock("retire", "--undo", "old.lingering")).out
    assert (await penstock("run", "old.lingering")).code == 0
    await house.quiet()
    await house.sound()


async def test_a_definition_in_use_is_not_retired(house: Installation) -> None:
    await house.apply(linger, lingering, happened, listens)
    said = await penstock("retire", "old.linger")
    assert (said.code, "rule old.listens, workflow old.lingering" in said.err) == (1, True)
    assert "rule old.listens" in (await penstock("retire", "old.happened")).err
    assert (await penstock("rules", "disable", "old.listens")).code == 0
    assert (await penstock("retire", "old.lingering")).code == 0
    assert (await penstock("retire", "old.linger")).code == 0
    assert "Did you mean 'old.linger'?" in (await penstock("retire", "old.lingr")).err
    refused = await penstock("rules", "enable", "old.listens")
    assert refused.code == 0  # it fails on events then, and says so
