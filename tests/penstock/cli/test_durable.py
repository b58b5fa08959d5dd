"""The commands about durable functions: show, why, signal, skip, set-result, rerun --from, replay, lint, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.language.loading import load
from penstock.operate.durable_steps import TIMED_OUT
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock
from tests.penstock.operate import deadlines

CODE = """
import asyncio
from penstock import DurableContext, Pack, action

pack = Pack("dur")

@action
async def double(n: int) -> int:
    return 2 * n

async def branch(ctx: DurableContext, n: int) -> int:
    return await ctx.step("branch", double, n)

@action
async def order(ctx: DurableContext, n: int) -> list:
    ctx.set("stage", "begun")
    first = await ctx.step("first", double, n)
    both = await asyncio.gather(branch(ctx, 1), branch(ctx, 2))
    child = await ctx.run(double, n=first)
    word = await ctx.signal("word")
    who = await ctx.ask("Who?")
    return [first, *both, child, word, who]
"""


async def told(*words: object) -> Any:
    said = await penstock(*words, "--json")
    assert said.code == 0, said.err
    return said.document


async def test_a_run_is_seen_told_and_run_again(house: Installation, tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(CODE)
    definitions = load(file)
    await house.start(*definitions.actions.values())
    id = await house.client.start("dur.order", {"n": 3})
    await house.until("select 1 from suspended where signals <> '[]'")
    said = await penstock("show", id)
    assert "first" in said.out
    assert "begun" in said.out
    assert "waits for the signal word (for " in " ".join(said.out.split())
    shown = await told("show", id)
    assert [(s["label"], s["wait"]["awaits"]) for s in shown["steps"] if s["wait"]] == [
        ("word", "the signal word")
    ]
    assert [(s["branch"], s["name"], s["status"]) for s in shown["steps"] if s["kind"] == "step"] == [
        ([], "first", "completed"),
        ([1], "branch", "completed"),
        ([2], "branch", "completed"),
    ]
    assert "the signal word" in (await told("why", id))["says"]
    assert (await told("replay", id, "--against", file))["says"] == "it waits"
    mistyped = await penstock("signal", id, "wrod", "1")
    assert mistyped.code == 0
    assert "The function waits for 'word', and not for 'wrod'. Did you mean 'word'?" in mistyped.err
    assert (await told("signal", id, "word", '"go"'))["awaited"] is True
    await house.until(
        "select 1 from inquiry i join suspended s on s.execution_id = $1::uuid where i.status = 'created'", id
    )
    assert "Step 'ask' waits for an answer" in (await told("why", id))["sentence"]
    await told("set-result", id, "ask", '"ada"')
    assert await house.client.result(id, timeout=20) == [6, 2, 4, 12, "go", "ada"]
    late = await penstock("signal", id, "word", "1")
    assert (late.code, f"{id} has ended: it is completed" in " ".join(late.err.split())) == (1, True)
    again = (await told("rerun", id, "--from", "ask"))["id"]
    await house.until("select 1 from suspended")
    await told("skip", again, "ask")
    rows = await house.until("select r.result from result r where r.execution_id = $1::uuid", again)
    assert rows[0]["result"] == '[6, 2, 4, 12, "go", null]'
    await house.sound()


async def test_function_is_signalled_by_the_key_of_its_start(house: Installation, tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(CODE)
    await house.start(*load(file).actions.values())
    id = await house.client.start("dur.order", {"n": 3}, key="order-7", tenant="acme")
    await house.until("select 1 from suspended where signals <> '[]'")
    sent = await told("signal", "--key", "order-7", "--tenant", "acme", "word", '{"a": 1}')
    assert sent == {"id": str(id), "signal": "word", "awaited": True, "awaits": ["word"]}
    stored = "select result from step where name = 'signal/word'"
    assert [row["result"] for row in await house.rows(stored)] == ['{"a":1}']
    missing = await penstock("signal", "--key", "order-7", "word")
    assert (missing.code, "no execution of tenant public" in " ".join(missing.err.split())) == (1, True)
    for words in (("signal", id), ("signal", "--key", "k", "word", "1", "2"), ("signal", "order-7", "word")):
        assert (await penstock(*words)).code == 2


async def test_show_names_a_passed_deadline_without_an_error(house: Installation) -> None:
    await house.start(*deadlines.ALL)
    id = await house.client.start("deadlines.waits")
    await house.client.result(id, timeout=30)
    steps = (await told("show", id))["steps"]
    assert {step["label"]: step["status"] for step in steps} == deadlines.STATUSES
    text = (await penstock("show", id)).out
    assert text.count(TIMED_OUT) == len(deadlines.PLANNED)
    assert "the step is broken" in text
    assert "nothing was told in time" not in text


async def test_new_code_is_tried_against_a_run(house: Installation, tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(CODE)
    await house.start(*load(file).actions.values())
    id = await house.client.start("dur.order", {"n": 3})
    await house.until("select 1 from suspended where signals <> '[]'")
    assert "all of them began with the registered code" in (await penstock("doctor")).out.replace("\n", " ")
    other = tmp_path / "changed.py"
    other.write_text(CODE.replace('ctx.step("first"', 'ctx.step("other"'))
    said = await penstock("replay", id, "--against", other)
    assert said.code == 1
    replayed = said.out.replace("\n", " ")
    assert "requests step other" in replayed
    assert "penstock replay" not in replayed
    assert ".." not in replayed.replace("(...)", "")
    shorter = tmp_path / "shorter.py"
    shorter.write_text(
        CODE.replace("    child = await", "    await ctx.step('new', double, 1)\n    child = await")
    )
    said = await penstock("replay", id, "--against", shorter)
    assert said.code == 1
    await house.apply(*load(other).actions.values())
    assert "began with other code" in (await penstock("doctor")).out.replace("\n", " ")


TARGETS = """
from penstock import DurableContext, Pack, Trigger, action
from penstock.errors import StepTimedOut

pack = Pack("targets")
paid, refunded = Trigger("targets.paid"), Trigger("targets.refunded")

@action
async def double(n: int) -> int:
    return 2 * n

@action
async def triple(n: int) -> int:
    return 3 * n

@action
async def order(ctx: DurableContext) -> list:
    child = await ctx.run(double, n=1, name="child")
    items = await ctx.map(double, [{"n": 2}], name="items")
    try:
        await ctx.wait_for(paid, timeout=0.1)
    except StepTimedOut:
        return [child, *items, await ctx.step("after", double, 3)]
"""


async def test_replay_names_another_target_of_an_archived_run(house: Installation, tmp_path: Path) -> None:
    file = tmp_path / "targets.py"
    file.write_text(TARGETS)
    definitions = load(file)
    await house.start(*definitions.actions.values(), *definitions.triggers.values())
    id = await house.client.start("targets.order")
    assert await house.client.result(id, timeout=30) == [2, 4, 6]
    await house.quiet()
    await house.rows("select * from archive_finished(interval '0', 100)")
    assert (await told("replay", id, "--against", file))["says"] == "it ends with its result"
    for step, old, new in (
        ("run child", "double", "triple"),
        ("map items", "double", "triple"),
        ("wait_for wait_for", "paid", "refunded"),
    ):
        other = tmp_path / f"{step.partition(' ')[2]}.py"
        call = f"{step.partition(' ')[0]}({old}"
        other.write_text(TARGETS.replace(call, call.replace(old, new)))
        replayed = await penstock("replay", id, "--against", other)
        sentence = f"{step} (targets.{new}), but its run has recorded {step} (targets.{old})"
        assert (replayed.code, sentence in " ".join(replayed.out.split())) == (1, True), replayed.out


async def test_a_nondeterministic_call_is_named(tmp_path: Path) -> None:
    file = tmp_path / "orders.py"
    file.write_text(CODE)
    assert (await penstock("lint", file)).code == 0
    file.write_text(CODE.replace("    ctx.set(", "    import time\n    asyncio.sleep(1)\n    ctx.set("))
    said = await penstock("lint", file)
    assert said.code == 1
    assert "ctx.sleep()" in said.out


FAILS = """
from penstock import DurableContext, Pack, action

pack = Pack("dur")

async def glue(pieces: dict) -> str:
    return pieces["glue"]

@action
async def mend(ctx: DurableContext) -> str:
    return await ctx.step("glue", glue, {})
"""


async def test_failed_step_shows_the_line_that_failed(house: Installation, tmp_path: Path) -> None:
    file = tmp_path / "mends.py"
    file.write_text(FAILS)
    await house.start(*load(file).actions.values())
    id = await house.client.start("dur.mend")
    await house.until("select 1 from execution where status = 'failed'")
    shown = await penstock("show", id)
    assert 'return pieces["glue"]' in shown.out
    assert 'await ctx.step("glue", glue, {})' in shown.out
    assert "engine/durable" not in shown.out
    [step] = [line for line in shown.out.splitlines() if line.startswith("glue")]
    assert "KeyError: 'glue'" in step
    assert "glue: KeyError: 'glue'" in (await penstock("executions")).out
