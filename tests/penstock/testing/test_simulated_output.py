"""The output of actions in a simulation, which is in the log of their step, and in the output of the test."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from penstock import DurableContext, action
from penstock.testing import DurableRun, Simulation


@action(pack="simout")
def plain(word: str) -> None:
    print("plain", word)
    logging.getLogger("shop").info("logged %s", word)


@action(pack="simout")
async def loops(word: str) -> None:
    print("loops", word)


def _glue(word: str) -> None:
    print("step", word)


@action(pack="simout")
async def durable(ctx: DurableContext, word: str) -> None:
    print("body", word)
    await ctx.step("glue", _glue, word)


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (plain, ["plain a", "INFO shop: logged a"]),
        (loops, ["loops a"]),
        (durable, ["body a", "step a"]),
    ],
)
def test_step_has_the_lines_that_its_action_printed(
    function: Any, lines: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    [step] = Simulation(plain, loops, durable).run(function, word="a").steps[:1]
    assert step.log == lines
    assert capsys.readouterr().out.splitlines() == [line for line in lines if "logged" not in line]


async def test_simulation_inside_a_loop_has_printed_lines() -> None:
    assert Simulation(loops).run(loops, word="b").steps[0].log == ["loops b"]


def test_durable_run_has_printed_lines() -> None:
    run = DurableRun()
    asyncio.run(run(durable, word="c"))
    assert run.log == ["body c", "step c"]
