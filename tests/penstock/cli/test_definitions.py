"""`penstock apply`, `actions`, `triggers` and `rules`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.language.terms.ids import new_id
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

SHOP = """
from penstock import Rule, Trigger, action

order_placed = Trigger("cli_shop.order_placed", description="Somebody ordered.")

@action(pack="cli_shop")
async def charge(order: int) -> int:
    "Take the money."
    return order

Rule("cli_shop.charge_all", trigger=order_placed, action=charge, params={"order": "{{ payload.id }}"})
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "cli_shop.py"
    path.write_text(SHOP)
    return path


async def test_applying_twice_changes_nothing(named: str, module: Path) -> None:
    first = await penstock("apply", module)
    assert first.code == 0
    assert "3 of 3 definitions changed." in first.out
    assert "0 of 3 definitions changed." in (await penstock("apply", module)).out
    assert {d["what"] for d in (await penstock("apply", module, "--json")).documents} == {"unchanged"}


async def test_applied_definitions_are_listed(named: str, module: Path) -> None:
    assert "There are no definitions of this kind yet" in (await penstock("actions")).out
    await penstock("apply", module)
    assert "Take the money." in (await penstock("actions")).out
    assert "Somebody ordered." in (await penstock("triggers")).out
    assert "cli_shop.charge" in (await penstock("rules", "list")).out
    [rule] = (await penstock("rules", "list", "--json")).documents
    assert (rule["ref"], rule["enabled"]) == ("cli_shop.charge_all", True)


async def test_a_rule_can_be_disabled_enabled_and_deleted(named: str, module: Path) -> None:
    await penstock("apply", module)
    rule = "cli_shop.charge_all"
    assert "is disabled" in (await penstock("rules", "disable", rule)).out
    assert not (await penstock("rules", "list", "--json")).document["enabled"]
    assert (await penstock("rules", "enable", rule, "--json")).document == {"rule": rule, "is": "enabled"}
    assert (await penstock("rules", "list", "--json")).document["enabled"]
    assert (await penstock("rules", "delete", rule)).code == 0
    assert (await penstock("rules", "list", "--json")).documents == []
    gone = await penstock("rules", "delete", rule)
    assert gone.code == 1
    assert "penstock rules list" in gone.err


async def test_a_module_that_is_wrong_is_refused_with_its_place(named: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text("from penstock import action\n\n@action(pack='x', retry={'attempts': 3})\ndef f(): ...\n")
    said = await penstock("apply", path)
    assert said.code == 1
    assert "wrong.py:" in said.err
    assert "Traceback" not in said.err
    path.write_text("import nowhere_to_be_found")
    assert "nowhere_to_be_found" in (await penstock("apply", path)).err
    assert (await penstock("apply", tmp_path / "gone.py")).code == 1


async def test_a_route_that_is_not_among_the_known_ones_is_refused(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_KNOWN_ROUTES", "default, gpu")
    path = tmp_path / "cli_routed.py"
    path.write_text(SHOP.replace('@action(pack="cli_shop")', '@action(pack="cli_shop", route="gpus")'))
    refused = await penstock("apply", path)
    assert refused.code != 0
    assert "unknown route 'gpus' (action cli_shop.charge)" in refused.out + refused.err
    assert "Did you mean 'gpu'?" in refused.out + refused.err
    right = tmp_path / "cli_routed_right.py"
    right.write_text(path.read_text().replace("gpus", "gpu"))
    assert (await penstock("apply", right)).code == 0


async def test_a_later_definition_is_checked_against_registered_ones(
    named: str, module: Path, tmp_path: Path
) -> None:
    await penstock("apply", module)
    flow = tmp_path / "flow.yaml"
    flow.write_text("workflow: cli_shop.flow\ntasks:\n  pay: {action: cli_shop.charge, input: {ordr: 1}}\n")
    refused = await penstock("apply", flow)
    assert refused.code == 1
    assert "flow.yaml:3: workflow cli_shop.flow" in refused.err
    assert "`cli_shop.charge` has no parameter `ordr`" in refused.err
    assert "`cli_shop.charge` needs the parameter `order`" in refused.err
    assert "Did you mean 'order'?" in refused.err
    made = (
        "schedule",
        "create",
        "cli_shop.daily",
        "--cron",
        "@daily",
        "--action",
        "cli_shop.charge",
        "--param",
    )
    assert "`nothere` is not defined here" in (await penstock(*made, "order={{ nothere.x }}")).err
    assert "`cli_shop.charge` has no parameter `ordr`" in (await penstock(*made, "ordr=1")).err


FLOW = """
from penstock import action, workflow

@action(pack="cli_flow", retry={{"max_attempts": {tries}}})
async def charge(order: int) -> int:
    return order

@workflow(pack="cli_flow")
def fulfil(order: int):
    return {{"{name}": charge(order=order)}}
"""


async def test_apply_counts_open_runs_of_former_versions(house: Installation, tmp_path: Path) -> None:
    """No service runs, so what is started stays open: each count is that of the starts before the change. The fifth workflow
    begins in its submit, and so starts an action."""
    path = tmp_path / "cli_flow.py"
    path.write_text(FLOW.format(tries=2, name="first"))
    first = await penstock("apply", path)
    assert "former" not in first.out
    assert "worker" not in first.out
    for _ in range(5):
        await house.client.start("cli_flow.fulfil", {"order": 1})
        await house.client._submits.settle()
    await house.client.start("cli_flow.charge", {"order": 1})
    assert "former" not in (await penstock("apply", path)).out
    path = tmp_path / "cli_flow_2.py"  # a process imports a file once
    path.write_text(FLOW.format(tries=3, name="second"))
    changed = await penstock("apply", path)
    assert "2 of 2 definitions changed." in changed.out
    assert re.search(
        r"cli_flow.fulfil: 5 executions of former versions \(\d running, \d waiting\)", changed.out
    )
    assert "Each keeps the graph with which it started." in changed.out
    assert "cli_flow.charge: 2 executions of former versions (0 running, 2 waiting)" in changed.out
    again = await penstock("apply", path, "--json")
    assert {d["ref"]: (d["what"], d["open_runs"], d["workers"]) for d in again.documents} == {
        "cli_flow.charge": ("unchanged", 2, []),
        "cli_flow.fulfil": ("unchanged", 5, []),
    }


async def test_apply_names_live_workers_that_offer_its_actions(house: Installation, tmp_path: Path) -> None:
    path = tmp_path / "cli_flow.py"
    path.write_text(FLOW.format(tries=2, name="first"))
    for name, actions, age in (
        ("apt", ["cli_flow.charge", "other.thing"], 0),
        ("gone", ["cli_flow.charge"], 86_400),
        ("other", ["other.thing"], 0),
    ):
        await house.session.fetch(
            "insert into process (id, kind, name, actions, beat_at)"
            " values ($1, 'worker', $2, $3, clock_timestamp() - make_interval(secs => $4)) returning 1",
            new_id(),
            name,
            actions,
            float(age),
        )
    told = (await penstock("apply", path)).out
    assert (
        "1 worker with these actions (apt) still has the code with which it was started: restart it" in told
    )
    documents = (await penstock("apply", path, "--json")).documents
    assert {d["ref"]: d["workers"] for d in documents} == {"cli_flow.charge": ["apt"], "cli_flow.fulfil": []}
