"""`penstock dev` takes over what is saved: what runs is not lost, and what is wrong leaves the definitions from before."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from penstock.cli.dev_loop import line_of, print_executions, reload_changes, take_over
from penstock.client.client import Client
from penstock.client.local_installation import LocalInstallation
from penstock.language.loading.reload import folders_of

MODULE = """
import asyncio
from pathlib import Path
from penstock import action

@action(pack="reloaded")
async def answer(wait_for: str = "") -> str:
    while wait_for and not Path(wait_for).exists():
        await asyncio.sleep(0.05)
    return "{}"
"""

RETRIED = """
from penstock import DurableContext, current, later

@action(pack="reloaded", retry={"max_attempts": 2, "initial_delay": 0.01})
async def retried() -> str:
    if current().attempt == 1:
        raise ConnectionError("the bank is closed")
    return "paid"

@action(pack="reloaded")
async def asking(ctx: DurableContext) -> str:
    return await ctx.ask("Pay 25?")

@action(pack="reloaded")
async def outside():
    return later("bank:7", timeout="2d")
"""


@pytest.fixture
def module(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.delenv("PENSTOCK_BROKER_URL", raising=False)
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    path = tmp_path / "reloaded_shop.py"
    path.write_text(MODULE.format("the first"))
    return path


async def test_a_saved_file_is_taken_over_and_running_work_goes_on(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with LocalInstallation.started(tmp_path, modules=[str(module)]) as local:
        async with Client.connect(local.settings) as client:
            gate = tmp_path / "gate"
            first = await client.start("reloaded.answer", {"wait_for": str(gate)})
            await _running(client, first)

            asked = asyncio.Event()
            watching = asyncio.create_task(reload_changes(local, [str(module)], asked))
            await _says(client, "the second", lambda: module.write_text(MODULE.format("the second")))
            asked.set()
            await watching

            module.write_text("not Python (")
            await take_over(local, [str(module)], folders_of([str(module)]), [module.name])
            said = capsys.readouterr().err
            assert "reloaded_shop.py:1: it is not Python" in said
            assert "the definitions from before" in said
            assert await client.run("reloaded.answer", timeout=20) == "the second"

            gate.touch()
            assert await client.result(first, timeout=20) == "the first"
            assert [attempt.outcome for attempt in await client.attempts(first)] == ["completed"]


async def test_failed_attempts_and_questions_have_lines(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.write_text(MODULE.format("once") + RETRIED)
    async with LocalInstallation.started(tmp_path, modules=[str(module)]) as local:
        printing = asyncio.create_task(print_executions(local))
        async with Client.connect(local.settings) as client:
            for ref in ("reloaded.retried", "reloaded.asking", "reloaded.outside"):
                await client.start(ref)
            lines = await _lines(capsys, 4)
        printing.cancel()
    [failed] = [line for line in lines if "attempt 1 failed" in line]
    assert "reloaded.retried  attempt 1 failed  ConnectionError: the bank is closed" in failed
    assert sum("reloaded.retried  completed" in line for line in lines) == 1
    assert sum("waits for an answer: Pay 25?" in line for line in lines) == 1
    assert sum("waits for an outside system to complete bank:7" in line for line in lines) == 1


async def _lines(capsys: pytest.CaptureFixture[str], count: int) -> list[str]:
    """Wait until `count` lines are printed, and return them."""
    printed = ""
    for _ in range(400):
        printed += capsys.readouterr().err
        lines = [line for line in printed.splitlines() if "reloaded." in line or "inquiry" in line]
        if len(lines) >= count:
            return lines
        await asyncio.sleep(0.05)
    raise AssertionError(f"not {count} lines: {printed}")


async def _running(client: Client, id: UUID) -> None:
    for _ in range(400):
        if (await client.get(id)).status == "running":
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it does not run")


async def _says(client: Client, wanted: str, save: Any) -> None:
    """Save again now and then, as the instant is unknown at which the watch begins."""
    for turn in range(100):
        if turn % 10 == 0:
            save()
        if await client.run("reloaded.answer", timeout=20) == wanted:
            return
        await asyncio.sleep(0.1)
    raise AssertionError("it was not taken over")


def test_an_execution_has_one_line() -> None:
    began = datetime(2026, 1, 1, tzinfo=UTC)
    found = {
        "id": UUID(int=7),
        "action": "shop.charge",
        "task": "pay",
        "parent": UUID(int=1),
        "status": "failed",
        "created_at": began,
        "finished_at": began + timedelta(seconds=2),
        "error": {"type": "ValueError", "message": "no card\nsecond line"},
        "result": None,
    }
    line = line_of(found)
    assert "  shop.charge (pay)" in line
    assert "ValueError: no card second line" in line
    assert "\n" not in line
    assert "in 2.0 s" in line
    assert "  shop.charge (pay) [bold]order \\[red][/bold]  [red]failed" in line_of(
        {**found, "title": "order [red]"}
    )
    completed = line_of({**found, "status": "completed", "error": None, "result": {"a": "x" * 200}})
    assert '{"a":"xxx' in completed
    assert completed.count("x") < 200


RULES = """
from penstock import Rule, Trigger, action

paid = Trigger("reloaded.paid")

@action(pack="reloaded")
async def book(amount: int) -> int:
    return amount

Rule("reloaded.no_such_key", trigger=paid, when="payload.amout > 3", action=book, params={"amount": 1})
Rule("reloaded.no_template_value", trigger=paid, action=book, params={"amount": "{{ payload.amout }}"})
Rule("reloaded.wrong_type", trigger=paid, action=book, params={"amount": "{{ payload.text }}"})
"""


async def test_rule_that_fails_on_an_event_has_a_line(
    module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    module.write_text(RULES)
    async with LocalInstallation.started(tmp_path, modules=[str(module)]) as local:
        printing = asyncio.create_task(print_executions(local))
        async with Client.connect(local.settings) as client:
            event = await client.publish("reloaded.paid", {"amount": 5, "text": "five"})
            text = ""
            async with asyncio.timeout(30):
                while text.count("penstock rules rerun") < 3:
                    await asyncio.sleep(0.1)
                    text += capsys.readouterr().err
            await asyncio.sleep(1)  # a second look must not print a failure again
            text += capsys.readouterr().err
        printing.cancel()
    printed = " ".join(text.split())
    for rule, cause in (("no_such_key", "amout"), ("no_template_value", "amout"), ("wrong_type", "amount")):
        assert printed.count(f"rule reloaded.{rule} failed on an event") == 1, printed
        assert cause in printed.partition(f"rule reloaded.{rule} failed on an event")[2].partition("rerun")[0]
        assert f"penstock rules rerun reloaded.{rule}" in printed
    assert printed.count(str(event)) == 3
