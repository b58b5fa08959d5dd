"""T2, T6, T7: what a workflow may say, and what it decides."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from tests.parity.host import Host

CYCLE = "{a: {action: noop, needs: [c]}, b: {action: noop, needs: [a]}, c: {action: noop, needs: [b]}}"
WRONG = {
    "circle": CYCLE,
    "nowhere": "{a: {action: noop, needs: [nowhere]}}",
    "twice": "{a: {action: noop}, a: {action: noop}}",
    "task": "{}",
    "flow.nothing": "{a: {action: flow.nothing}}",
}
"""A word that the refusal has to have, and the tasks."""

OK, BAD, GONE = "{success: ok}", "{failed: bad}", "{skipped: gone}"
RULES: tuple[tuple[str, bool], ...] = (
    ("always", True),
    ("all_done", True),
    ("all_success", False),
    ("one_success", True),
    ("one_failed", True),
    ("none_failed", False),
    (OK, True),
    ("{failed: ok}", False),
    (BAD, True),
    ("{success: bad}", False),
    (GONE, True),
    ("{skipped: ok}", False),
    (f"{{all: [{OK}, {BAD}, {GONE}]}}", True),
    (f"{{all: [{OK}, {{failed: gone}}]}}", False),
    (f"{{any: [{{failed: ok}}, {GONE}]}}", True),
    ("{any: [{failed: ok}, {success: gone}]}", False),
    ("{none: [{failed: ok}, {success: bad}]}", True),
    (f"{{none: [{OK}]}}", False),
    (f"{{all: [{{any: [{{failed: ok}}, {{none: [{{success: bad}}]}}]}}, {GONE}]}}", True),
    ('"{{ parameters.n + 1 == 6 }}"', True),
    ('"{{ parameters.n > 5 }}"', False),
)
COMPARED: tuple[tuple[str, str, Any, bool], ...] = (
    ("n", "==", 5, True),
    ("n", "!=", 5, False),
    ("n", ">", 4, True),
    ("n", ">=", 5, True),
    ("n", "<", 5, False),
    ("n", "<=", 5, True),
    ("n", "in", [4, 5], True),
    ("n", "not in", [4, 5], False),
    ("words", "contains", "b", True),
    ("words", "not contains", "b", False),
    ("text", "contains", "ell", True),
    ("deep.list.1.x", "==", 7, True),
    ("deep.list.1.y", "exists", None, False),
    ("deep.list", "exists", None, True),
    ("nowhere", "not exists", None, True),
    ("nowhere", "==", None, False),
    ("set_by_ok", "==", "yes", True),
)


async def t02_initialised_in_order(host: Host) -> str:
    """Workflow initialised in topological order, in one transaction; cycle, missing dependency, duplicate and empty rejected."""
    site = await host.shared()
    packs = [
        site.apply(
            f"name: t02_{n}\nworkflows:\n  wrong: {{tasks: {tasks}}}\n", f"t02_{n}/pack.yaml", code=None
        )
        for n, tasks in enumerate(WRONG.values())
    ]
    for (word, tasks), answer in zip(WRONG.items(), await asyncio.gather(*packs), strict=True):
        assert answer.code != 0, f"{tasks} was taken"
        assert word in answer.all, f"{tasks} was refused without {word!r}: {answer.all[:300]}"
    backwards = "\n".join(
        f"      t{n}: {{action: flow.echo, input: {{n: 1}}, needs: [t{n + 1}]}}" for n in range(9)
    )
    await site.apply(
        f"name: t02\nworkflows:\n  chain:\n    tasks:\n{backwards}\n      t9: {{action: flow.echo, input: {{n: 1}}}}\n",
        "t02/pack.yaml",
    )
    id = await site.client.start("t02.chain")
    assert await site.ends(id) == ["completed"]
    rows = await site.sql("select task from execution where parent = $1 order by created_at, id", id)
    order = [row["task"] for row in rows]
    assert order == [f"t{n}" for n in range(9, -1, -1)], f"tasks ran in the order {order}"
    output = await site.command("show", id, "--json")
    assert [task["name"] for task in output.one["tasks"]] == order
    return (
        "ten tasks that were declared backwards ran in topological order; refused with the reason: a circle, "
        "a missing dependency, a duplicate, an empty one, an unknown action"
    )


async def t06_trigger_rules(host: Host) -> str:
    """Trigger rules: always, all/any/none of (task success, failed, skipped, context value with each operator), nested."""
    site = await host.shared()
    tasks = [
        '      ok: {action: flow.echo, input: {n: 1}, publish: {set_by_ok: "yes"}}',
        "      bad: {action: tasks.needs_file, input: {file: nowhere}}",
        '      gone: {action: flow.echo, input: {n: 1}, when: "{{ parameters.n > 5 }}"}',
    ]
    expected: dict[str, bool] = {}
    for n, (rule, runs) in enumerate(RULES):
        needs = "[ok]" if rule.startswith('"') else "[ok, bad, gone]"
        tasks.append(f"      rule_{n}: {{action: noop, needs: {needs}, when: {rule}}}")
        expected[f"rule_{n}"] = runs
    for n, (path, op, value, runs) in enumerate(COMPARED):
        value_text = "" if op.endswith("exists") else f", value: {json.dumps(value)}"
        tasks.append(
            f'      value_{n}: {{action: noop, needs: [ok], when: {{context: {path}, op: "{op}"{value_text}}}}}'
        )
        expected[f"value_{n}"] = runs
    parameters = (
        "n: {type: integer}, words: {type: array}, text: {type: string}, deep: {type: object}, nowhere: {}"
    )
    text = f"name: t06\nworkflows:\n  rules:\n    parameters: {{{parameters}}}\n    tasks:\n" + "\n".join(
        tasks
    )
    await site.apply(text + "\n", "t06/pack.yaml")
    params = {"n": 5, "words": ["a", "b"], "text": "hello", "deep": {"list": [0, {"x": 7}]}}
    id = await site.client.start("t06.rules", params)
    await site.ends(id)
    output = await site.command("show", id, "--json")
    outcomes = {task["name"]: task["status"] == "completed" for task in output.one["tasks"]}
    named = {f"rule_{n}": rule for n, (rule, _) in enumerate(RULES)}
    named |= {f"value_{n}": f"{path} {op} {value}" for n, (path, op, value, _) in enumerate(COMPARED)}
    wrong = [
        f"{named[name]} {'did not run' if runs else 'ran'}"
        for name, runs in expected.items()
        if outcomes[name] is not runs
    ]
    assert not wrong, f"of {len(expected)} rules: {'; '.join(wrong)}"
    return (
        f"{len(expected)} rules in one run came out right: {len(RULES)} of tasks, nested ones too, and "
        f"{len(COMPARED)} comparisons with all twelve operators and paths"
    )


async def t07_context(host: Host) -> str:
    """Context: initial + merged from dependencies + task's own; persisted, restart-safe; deterministic merge in
    declared order."""
    site = await host.shared()
    ids = [await site.client.start("tasks.shared_context", {"day": day}) for day in range(1, 7)]
    expected = [
        {
            "day": day,
            "rows": 2 * day,
            "slow": 2 * day + 1,
            "quick": 2 * day + 2,
            "sum": 5 * day + 3,
            "seen": "quick",
        }
        for day in range(1, 7)
    ]
    results = [await site.client.result(id, timeout=60) for id in ids]
    for result, want in zip(results, expected, strict=True):
        assert {name: result.get(name) for name in want} == want, f"context: {result}, wanted {want}"
        assert result["who"] == "quick", "the branch that ended last won, not the one that is declared last"
    async with host.site(executors=1, workers=1) as own:
        file = own.folder / "t07"
        id = await own.client.start("tasks.steered", {"file": str(file)})
        await own.until(
            lambda: own.sql("select 1 from execution where parent = $1 and status = 'running'", id),
            "a task to run",
        )
        for service in list(own.services):
            service.kill()
        file.touch()
        own.executor("executor-new")
        own.worker("worker-new")
        assert await own.ends(id) == ["completed"], "a run did not survive a restart of everything"
        assert (await own.client.result(id))["last"]["n"] == 2
    return (
        "initial values, those of both branches and the task's own reach the last task; of one name the "
        "branch declared last wins in six runs, though it ends first; a rule sees the same; a run went on "
        "after kill -9 of all services"
    )
