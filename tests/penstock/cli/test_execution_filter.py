"""Executions and events that are chosen by options: listed, cancelled and run once more by the many."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from penstock import Rule, Trigger, action
from penstock.client import executions
from penstock.client.bulk import tally
from penstock.language.workflows import from_yaml
from penstock.store.executions import archive
from penstock.store.executions.execution_list import ExecutionFilter
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="many")
async def talk(word: str, times: int = 1) -> str:
    if word == "bad":
        raise ValueError("it is bad")
    for _ in range(times):
        print(word)
    return word


said = Trigger("many.said")
on_said = Rule("many.on_said", trigger=said, action=talk, params={"word": "{{ payload.word }}"})
inner = from_yaml("workflow: many.inner\ntasks: {deep: {action: many.talk, input: {word: deep}}}\n")
outer = from_yaml("""
workflow: many.outer
parameters: {second: string}
tasks:
  first: {action: many.talk, input: {word: one}}
  each: {action: many.talk, with_items: [x, y], input: {word: "{{ item }}"}, needs: first}
  below: {workflow: many.inner, needs: each}
  last: {action: many.talk, input: {word: "{{ parameters.second }}"}, needs: below}
""")
ALL = (talk, said, on_said, inner, outer)


async def listed(*words: object) -> list[str]:
    return [row["id"] for row in (await penstock("executions", "--json", *words)).documents]


async def test_executions_are_listed_by_their_properties_and_times(house: Installation) -> None:
    await house.start(*ALL)
    client = house.client
    keyed = await client.start("many.talk", {"word": "keyed", "times": 2}, key="order-7")
    event = await client.publish(
        "many.said", {"word": "event", "to": {"name": "ada"}}, key="e-1", source="till"
    )
    flow = await client.start("many.outer", {"second": "two"})
    await client.result(flow, timeout=20)
    await house.quiet()
    await house.until("select 1 from log_line having count(*) = 8")  # stored a moment after the ends
    await _belongs_to(flow)
    await archive.archive_finished(house.session, 0, 100, 0)
    await _belongs_to(flow)
    other = await client.start("many.talk", {"word": "other"}, tenant="acme", key="order-7")
    await client.publish("many.said", {"word": "later"})
    newest = await client.publish("many.said", {"word": "newest"})
    await house.until("select 1 from enforcement having count(*) = 3")
    await house.quiet()
    [[by_event]] = await house.rows("select execution_id from enforcement where event_id = $1", event)
    chosen: dict[tuple[object, ...], list[Any]] = {
        ("--param", "word=keyed"): [keyed],
        ("-p", "word=keyed", "-p", "times=3"): [],
        ("--key", "order-7"): [keyed],
        ("--key", "order-7", "--tenant", "acme"): [other],
        ("--event", event): [by_event],
        ("--status", "completed", "--status", "failed", "--action", "many.outer"): [flow],
        ("--until", "1h"): [],
        ("--since", "0001-01-01", "--until", "9999-12-31", "--tenant", "acme"): [other],
    }
    for words, ids in chosen.items():
        assert await listed(*words) == [str(id) for id in ids], words
    assert "an age, such as 1h" in (await penstock("executions", "--since", "yesterday")).err
    assert await executions.count(house.session, ExecutionFilter(children=True, tenant="public")) == 11

    async def events(*words: object) -> list[str]:
        return [row["payload"]["word"] for row in (await penstock("events", "--json", *words)).documents]

    assert await events("--limit", 2, "--before", newest) == ["later", "event"]
    assert await events("--key", "e-1", "--source", "till", "-p", 'to={"name": "ada"}') == ["event"]
    assert await events("--until", "1h") == []
    assert '{"word":"later"}' in (await penstock("events", "--since", "1h", "--trigger", "many.said")).out


async def _belongs_to(flow: UUID) -> None:
    """The tasks of a workflow, and what they have printed, are found."""
    tasks = (await penstock("executions", "--parent", flow, "--json")).documents
    assert sorted(row["task"] for row in tasks) == ["below", "each", "each", "first", "last"]
    lines = (await penstock("logs", flow)).out.splitlines()
    assert lines[0] == "first | one"
    assert sorted(lines[1:3]) == ["each[0] | x", "each[1] | y"]
    assert lines[3:] == ["below.deep | deep", "last | two"]


async def test_many_are_cancelled_in_batches_and_those_that_are_left_if_it_is_done_again(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "CANCELLED_AT_ONCE", 3)
    await house.apply(*ALL)
    await house.client.start_many("many.talk", [{"word": "no", "times": n} for n in range(1, 8)])
    kept = await house.client.start("many.talk", {"word": "yes"})
    nobody = await penstock("cancel", "--dry-run")
    assert (nobody.code, "nothing is selected" in nobody.err) == (1, True)
    assert (
        "use either ids or filter options"
        in (await penstock("cancel", kept, "--action", "many.talk")).err.lower()
    )
    assert (await penstock("cancel", "-p", "word=no", "--dry-run")).out.strip() == "7 would be asked to stop."
    assert set(await house.statuses()) == {"scheduled"}
    assert (
        await penstock("cancel", "-p", "word=no", "--reason", "mistaken")
    ).out.strip() == "7 asked to stop."
    assert await house.statuses() == {"cancelled": 7, "scheduled": 1}
    assert (await penstock("cancel", "-p", "word=no", "--json")).document["told"] == 0
    assert (await penstock("cancel", "--all", "--json")).document["told"] == 1


async def test_many_that_failed_are_run_once_more_each_once(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "RERUN_AT_ONCE", 2)
    await house.start(*ALL)
    await house.client.start_many("many.talk", [{"word": "bad"}] * 5)
    flow = await house.client.start("many.outer", {"second": "bad"})
    await house.client.start("many.talk", {"word": "good"})
    await house.quiet()
    asked = ("rerun", "--status", "failed", "--from-failed", "--by", "ada", "--json")
    assert (await penstock(*asked, "--dry-run")).document == {"done": 6, "refused": []}
    broken_off = executions.rerun(
        house.client, ExecutionFilter(status=["failed"]), by="ada", from_failed=True
    )
    assert (await anext(broken_off)).said
    await house.quiet()
    assert (await penstock(*asked)).document[
        "done"
    ] == 6  # the four that were left, and the two that failed again
    await house.quiet()
    counted = "count(*) as runs, count(distinct origin ->> 'rerun_of') as runs_of"
    [reruns] = await house.rows(f"select {counted} from payload where origin ? 'rerun_of'")
    assert (reruns["runs"], reruns["runs_of"]) == (8, 8)
    [again] = await house.rows(
        "select e.id from execution e join payload p on p.execution_id = e.id where p.origin ->> 'rerun_of' = $1",
        str(flow),
    )
    tasks = (await penstock("executions", "--parent", again["id"], "--json")).documents
    assert [row["task"] for row in tasks] == ["last"]
    completed = await tally(
        executions.rerun(house.client, ExecutionFilter(status=["completed"]), by="ada", from_failed=True)
    )
    assert completed.done == 0
    assert [refusal.count for refusal in completed.refused.values()] == [1]
    await house.sound()


async def test_versions_of_a_workflow_are_listed_and_compared(house: Installation) -> None:
    await house.apply(*ALL)
    changed = "workflow: many.inner\ntasks: {deep: {action: many.talk, input: {word: deep}, timeout: 5}}\n"
    await house.apply(from_yaml(changed))
    new, old = (await penstock("workflow", "versions", "many.inner", "--json")).documents
    assert (new["current"], old["current"], new["open_runs"]) == (True, False, 0)
    assert old["digest"][:12] in (await penstock("workflow", "versions", "many.inner")).out
    found = await penstock("workflow", "diff", "many.inner", old["digest"][:12], new["digest"])
    assert found.out.strip() == "+ tasks.deep.timeouts: {'attempt': 5.0}"
    back = await penstock("workflow", "diff", "many.inner", old["digest"])
    assert back.out.strip() == "- tasks.deep.timeouts: {'attempt': 5.0}"
    unknown = await penstock("workflow", "diff", "many.inner", "abcdef", "fedcba")
    assert "no version of many.inner begin" in unknown.err
    assert "no workflow" in (await penstock("workflow", "versions", "many.nothing")).err
