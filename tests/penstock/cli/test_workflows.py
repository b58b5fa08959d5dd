"""The commands about runs of workflows: show as a tree, pause, resume, skip, set-result, rerun, and answers."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock import action
from penstock.language.terms.ids import new_id
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="run")
async def nap(seconds: float = 0) -> str:
    await asyncio.sleep(seconds)
    return "rested"


@action(pack="run")
async def odd(n: int) -> int:
    if n % 2 == 0:
        raise ValueError(f"{n} is even")
    return n


INNER = from_yaml("workflow: run.inner\ntasks: {deep: {action: run.nap}}\n")
OUTER = from_yaml("""
workflow: run.outer
tasks:
  quick: {action: run.nap}
  slow: {action: run.nap, input: {seconds: 0.5}}
  join: {action: noop, needs: [quick, slow]}
  inner: {workflow: run.inner, needs: [join]}
  never: {action: run.nap, needs: [inner], when: one_failed}
""")
ASKING = from_yaml("""
workflow: run.asking
tasks:
  ask: {inquiry: {prompt: "Go on?", schema: {type: boolean}}}
  items: {action: run.odd, needs: [ask], with_items: [1, 2, 3], input: {n: "{{ item }}"}}
  after: {action: run.nap, needs: [items]}
on_exit: {action: noop}
""")
ALL = (nap, odd, INNER, OUTER, ASKING)


async def told(*words: object) -> Any:
    said = await penstock(*words, "--json")
    assert said.code == 0, said.err
    return said.document


async def test_a_run_is_shown_as_a_tree_with_the_path_that_took_the_time(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor()
    id = await house.client.start("run.outer")
    await house.until("select 1 from execution where status = 'scheduled' having count(*) = 2")
    await asyncio.sleep(0.3)  # work without a worker waits
    await house.worker(*ALL)
    await house.client.result(id, timeout=30)
    shown = await told("show", id)
    slow = next(task for task in shown["tasks"] if task["name"] == "slow")
    assert slow["waited"] >= 0.3
    assert 0.5 <= slow["ran"] <= shown["ran"]
    assert shown["critical_path"] == ["slow", "join", "inner"]
    assert {task["name"]: task["status"] for task in shown["tasks"]} == {
        "quick": "completed",
        "slow": "completed",
        "join": "completed",
        "inner": "completed",
        "never": "skipped",
    }
    [inner] = [task for task in shown["tasks"] if task["name"] == "inner"]
    assert [(task["name"], task["status"]) for task in inner["tasks"]] == [("deep", "completed")]
    said = (await penstock("show", id)).out
    assert "└─ deep" in said
    assert "slow > join > inner" in said
    assert 'fillcolor="#b7e1cd"' in (await penstock("show", id, "--dot")).out
    assert "class t_quick" in (await penstock("show", id, "--mermaid")).out
    await house.quiet()
    await house.rows("select * from archive_finished(interval '0', 100)")
    archived = await told("show", id)
    assert archived["critical_path"] == shown["critical_path"]
    assert [task["ran"] for task in archived["tasks"]] == [task["ran"] for task in shown["tasks"]]
    assert [task["status"] for task in archived["tasks"]] == [task["status"] for task in shown["tasks"]]


async def test_a_run_is_answered_paused_corrected_and_run_again(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("run.asking")
    [ask] = await house.until("select id from execution where task = 'ask' and status = 'waiting'")
    [open_] = (await penstock("inquiries", "--json")).documents
    assert open_["prompt"] == "Go on?"
    assert (open_["schema"], open_["status"]) == ({"type": "boolean"}, "created")
    assert (open_["run"]["id"], open_["run"]["action"]) == (str(id), "run.asking")
    listed = (await penstock("inquiries")).out
    assert "open" in listed
    assert "run.asking" in listed
    assert "created" not in listed
    assert (await told("show", id))["tasks"][1]["status"] == "not started"
    await told("pause", id, "--by", "ada", "--reason", "lunch")
    await told("answer", ask["id"], "true", "--by", "bob")
    await house.until("select 1 from workflow_task where record ->> 'status' = 'due'")
    assert [task["status"] for task in (await told("show", id))["tasks"]][:2] == ["completed", "paused"]
    await told("resume", id, "--by", "ada")
    await house.until("select 1 from execution where id = $1 and status = 'failed'", id)
    shown = await told("show", id)
    assert shown["tasks"][1]["executions"] == {"completed": 2, "failed": 1}
    assert [(one["kind"], one["by"], one["reason"]) for one in shown["told"]] == [
        ("pause", "ada", "lunch"),
        ("answer", "bob", None),
        ("resume", "ada", None),
    ]
    refused = await penstock("skip", id, "after")
    assert refused.code == 1
    error = " ".join(refused.err.split())
    assert f"{id} has ended: it is failed" in error
    assert f"penstock rerun {id} --from after" in error
    assert f"penstock rerun {id} --from-failed" in error

    assert f"Run it again with: penstock rerun {id} --from-failed" in (await penstock("why", id)).out
    again = (await told("rerun", id, "--from-failed", "--by", "ada"))["id"]
    why = " ".join((await penstock("why", id)).out.split())
    assert f"It was rerun as {again}, by ada." in why
    assert "Run it again" not in why
    [listed_run] = [row for row in (await penstock("executions", "--json")).documents if row["id"] == str(id)]
    assert listed_run["rerun"] == again
    assert f"rerun as {again}" in " ".join((await penstock("executions")).out.split())
    await house.until("select 1 from execution where id = $1 and status = 'failed'", again)
    shown = await told("show", again)
    assert shown["tasks"][0]["kept"]
    assert shown["tasks"][1]["executions"] == {"failed": 1}
    assert again in (await penstock("show", id)).out
    both = await penstock("rerun", id, "--from-failed", "--from", "items")
    assert "`from_failed` and `from_task` are both given" in both.err


async def test_rerun_changes_and_unsets_parameters(house: Installation) -> None:
    flow = from_yaml("""
workflow: run.changed
parameters: {n: {type: integer, required: true}, who: {type: object, default: {name: Bob}}, note: {type: string}}
tasks:
  first: {action: noop, input: {name: "{{ parameters.who.name }}"}}
  odd: {action: run.odd, needs: [first], input: {n: "{{ parameters.n }}"}}
""")
    await house.start(*ALL, flow)
    id = await house.client.start("run.changed", {"n": 2, "note": "a"})
    await house.until("select 1 from execution where id = $1 and status = 'failed'", id)
    words = ("rerun", id, "--set", "n=3", "--set", 'who.name="Ada"', "--unset", "note", "--by", "ada")
    refused = await penstock(*words, "--from-failed")
    assert refused.code == 1
    assert "task first read who.name" in refused.err
    new = (await told(*words))["id"]
    await house.until("select 1 from execution where id = $1 and status = 'completed'", new)
    shown = await told("show", new)
    assert shown["params"] == {"n": 3, "who": {"name": "Ada"}}
    kept = (await told("rerun", id, "--set", "n=5", "--from-failed"))["id"]
    await house.until("select 1 from execution where id = $1 and status = 'completed'", kept)
    many = await penstock("rerun", "--status", "failed", "--unset", "note")
    assert "Name the run" in many.err


async def test_a_command_that_a_run_refuses_is_shown_with_the_run(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("run.asking")
    await house.until("select id from execution where task = 'ask' and status = 'waiting'")
    await told("skip", id, "on_exit", "--by", "ada")
    await told("set-result", id, "items", "[1]", "--by", "ada")  # while it cannot begin by itself
    await told("set-result", id, "ask", "true", "--by", "ada")
    await house.until("select 1 from execution where id = $1 and status = 'completed'", id)
    said = await told("show", id)
    assert [one["error"] for one in said["told"]] == ["`on_exit` has not started", None, None]
    assert "refused: `on_exit` has not started" in (await penstock("show", id)).out


async def test_command_of_unknown_task_is_refused_at_once(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("run.asking")
    await house.until("select id from execution where task = 'ask' and status = 'waiting'")
    for words in (("skip", id, "iitems"), ("set-result", id, "iitems", "[]")):
        refused = await penstock(*words)
        assert refused.code == 1
        assert "run.asking has no task 'iitems'" in refused.err
        assert "Did you mean 'items'?" in refused.err
    listed = await penstock("skip", id, "nobody")
    assert "Available: after, ask, items, on_exit." in " ".join(listed.err.split())
    assert (await told("show", id))["told"] == []
    [child] = await house.rows("select id from execution where task = 'ask'")
    refused = await penstock("skip", child["id"], "ask")
    assert f"penstock skip {id} ask" in " ".join(refused.err.split())
    assert "no execution" in (await penstock("skip", new_id(), "ask")).err


async def test_command_of_ended_task_is_refused_at_once(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("run.asking")
    await house.until("select id from execution where task = 'ask' and status = 'waiting'")
    await told("skip", id, "after")
    await house.until("select 1 from workflow_command where obeyed_at is not null")
    refused = await penstock("set-result", id, "after", "1")
    assert refused.code == 1
    assert "`after` has ended already, as skipped" in refused.err
    assert len((await told("show", id))["told"]) == 1


async def test_command_of_a_task_names_open_tasks_before_it(house: Installation) -> None:
    await house.start(*ALL)
    id = await house.client.start("run.asking")
    await house.until("select id from execution where task = 'ask' and status = 'waiting'")
    said = " ".join((await penstock("set-result", id, "after", "1")).out.split())
    assert "`after` comes after tasks that have not ended: `items`." in said
    notice = (await told("set-result", id, "items", "[1]"))["notice"]
    assert notice.startswith("`items` comes after tasks that have not ended: `ask`.")
    assert (await told("set-result", id, "ask", "true"))["notice"] is None


async def test_a_workflow_is_shown_and_compared_in_every_form(house: Installation, tmp_path: Any) -> None:
    await house.apply(*ALL)
    assert (await told("workflow", "show", "run.outer"))["ref"] == "run.outer"
    assert "workflow: run.outer" in (await penstock("workflow", "show", "run.outer", "--yaml")).out
    assert "digraph" in (await penstock("workflow", "show", "run.outer", "--dot")).out
    assert (await penstock("workflow", "show", "run.outer", "--dot", "--yaml")).code == 1
    file = tmp_path / "inner.yaml"
    file.write_text("workflow: run.inner\ntasks: {deep: {action: run.nap, timeout: 5}}\n")
    [found] = (await penstock("workflow", "diff", "run.inner", str(file), "--json")).documents
    assert (found["what"], found["new"]) == ("added", {"attempt": 5})
