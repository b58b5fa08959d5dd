"""The scenarios that the conformance suite runs on a task executor: one action for each scenario.

An executor that calls Python functions takes `coroutine_action` or `function_action`; one that starts programs takes
the command of `program_command`. Any other executor implements the scenarios in its own terms, as described here:

| scenario | parameters | what it does |
|---|---|---|
| `echo` | `value` | gives `{"value": value, "attempt": N, "token": idempotency token}` back. |
| `fail` | | fails, with the word `boom` in what it says. |
| `unstorable` | | ends well, but what it gives back is not JSON. |
| `chatter` | `lines`, `word` | logs `<word> 0`, `<word> 1`, ... and gives back the number of lines. |
| `hold` | `path` | makes the file `<path>.held`, waits until the file `path` is there, and gives back "released". |
| `beat` | `path` | appends a byte to the file `path` every few milliseconds, until `<path>.stop` is there. |
| `crash` | | ends as badly as it can without the rest of the executor going down |
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.run.context import current

SCENARIOS = ("echo", "fail", "unstorable", "chatter", "hold", "beat", "crash")
PROGRAM = Path(__file__).with_name("scenario_program.py")
TICK = 0.005
LONGEST = 60.0


@dataclass(frozen=True, slots=True)
class ScenarioAction:
    """An action as task executors see it, without a definition."""

    ref: str
    function: Callable[..., Any] | None = None
    is_coroutine: bool = False
    executor: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def bind(self, params: Mapping[str, Any], /) -> dict[str, Any]:
        return dict(params)


def coroutine_action(scenario: str) -> ScenarioAction:
    """Return the scenario as an action with a coroutine function."""
    return ScenarioAction(f"scenario.{scenario}", _COROUTINES[scenario], is_coroutine=True)


def function_action(scenario: str) -> ScenarioAction:
    """Return the scenario as an action with a plain function."""
    return ScenarioAction(f"scenario.{scenario}", _FUNCTIONS[scenario])


def program_command(scenario: str) -> list[str]:
    """Return the command of the scenario as a program. The program reads parameters as JSON from stdin or
    PENSTOCK_PARAMS, and writes the result to stdout."""
    return [sys.executable, "-I", "-S", str(PROGRAM), scenario]


def ticks() -> range:
    return range(int(LONGEST / TICK))


def stopped(path: str) -> bool:
    """Append a byte to the file `path`, and return whether that was the last one."""
    with open(path, "ab") as file:
        file.write(b".")
    return there(path + ".stop")


def mark(path: str) -> None:
    Path(path).touch()


def there(path: str) -> bool:
    return Path(path).exists()


def echo(value: Any) -> dict[str, Any]:
    run = current()
    return {"value": value, "attempt": run.attempt, "token": run.idempotency_token}


def fail() -> None:
    raise ValueError("boom")


def unstorable() -> object:
    return {"half": object()}


def chatter(lines: int, word: str) -> int:
    for number in range(lines):
        print(word, number)
    return lines


def hold(path: str) -> str:
    mark(path + ".held")
    for _ in ticks():
        if there(path):
            return "released"
        time.sleep(TICK)
    raise TimeoutError("nobody released this attempt")


def beat(path: str) -> None:
    for _ in ticks():
        if stopped(path):
            return
        time.sleep(TICK)


def crash() -> None:
    sys.exit("crashed")


def crash_hard() -> None:
    """Crash the process, for executors that survive it."""
    os._exit(3)


async def _echo(value: Any) -> dict[str, Any]:
    return echo(value)


async def _fail() -> None:
    fail()


async def _unstorable() -> object:
    return unstorable()


async def _chatter(lines: int, word: str) -> int:
    for number in range(lines):
        print(word, number)
        await asyncio.sleep(0)
    return lines


async def _hold(path: str) -> str:
    mark(path + ".held")
    for _ in ticks():
        if there(path):
            return "released"
        await asyncio.sleep(TICK)
    raise TimeoutError("nobody released this attempt")


async def _beat(path: str) -> None:
    for _ in ticks():
        if stopped(path):
            return
        await asyncio.sleep(TICK)


async def _crash() -> None:
    crash()


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "echo": echo,
    "fail": fail,
    "unstorable": unstorable,
    "chatter": chatter,
    "hold": hold,
    "beat": beat,
    "crash": crash,
}
_COROUTINES: dict[str, Callable[..., Any]] = {
    "echo": _echo,
    "fail": _fail,
    "unstorable": _unstorable,
    "chatter": _chatter,
    "hold": _hold,
    "beat": _beat,
    "crash": _crash,
}
