"""TAB completes: a real bash asks, with what `penstock completion bash` told it."""

from __future__ import annotations

import asyncio
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

import pytest

from penstock import Limit, Schedule
from penstock.cli import COMPLETING
from penstock.language.workflows import from_yaml
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

BIN = Path(sys.executable).parent
PRESSES = 30
NIGHTLY = Schedule("shop.nightly", action=shop.count, cron="0 2 * * *", params={"words": "good night"})
DOOR = Limit(2, ref="shop.door", scope="shop.wait_for")
BOTH = from_yaml("{workflow: shop.both, tasks: {a: {action: shop.count, input: {words: a}}}}")


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("wor", "worker worker-conformance workers workflow"),
        ("workers cor", "cordon"),
        ("top --on", "--once"),
    ],
)
async def test_bash_completes_commands_their_parts_and_options(typed: str, completed: str) -> None:
    assert await completions(typed) == sorted(completed.split())


async def test_bash_completes_the_names_that_an_installation_has(house: Installation) -> None:
    await house.start(*shop.ALL, NIGHTLY, BOTH, DOOR)
    done = str(await house.client.start("shop.count", {"words": "a b"}))
    later = str(await house.client.start("shop.charge", {"order": 1}, delay=3600))
    await house.client.result(UUID(done), timeout=20)
    [worker] = await house.rows("select name from process where kind = 'worker'")
    await house.rows(
        "insert into process (id, kind, name, beat_at, state) "
        "values (gen_random_uuid(), 'worker', 'buried', clock_timestamp(), 'dead')"
    )
    for typed, names in (
        ("run shop.cou", "shop.count"),
        ("workflow show ", "shop.both"),
        ("retire shop.order", "shop.order_placed"),
        ("rules disable shop.big", "shop.big_orders"),
        ("publish shop.", "shop.order_placed"),
        ("schedule pause shop.", "shop.nightly"),
        ("limit set shop.do", "shop.door"),
        ("workers cordon ", worker["name"]),
        ("workers cordon some ", worker["name"]),
        ("worker --routes gpu,de", "gpu,default"),
        ("routes explain shop.cha", "shop.charge"),
        ("show ", f"{done} {later}"),
        ("cancel ", later),
        ("executions --status ca", "canceling cancelled"),
        ("executions --action shop.bo", "shop.both"),
        ("run nothing.", ""),
    ):
        await offers(typed, *names.split())


async def test_other_shells_show_the_meaning_of_a_name(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = str(await house.client.start("shop.charge", {"order": 1}, delay=3600))
    asked = {"_TYPER_COMPLETE_ARGS": "penstock why ", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    for shell, line in (
        ("fish", f"{id}\trequested shop.charge\n"),
        ("zsh", f'"{id}":"requested shop.charge"'),
    ):
        for _ in range(PRESSES):
            said = await ran([BIN / "penstock"], {**asked, COMPLETING: f"complete_{shell}"})
            if line in said.stdout:
                break
        assert line in said.stdout, said


@pytest.mark.parametrize("named", ["PENSTOCK_DATABASE_URL", "PENSTOCK_SERVER"])
async def test_one_that_does_not_answer_is_not_waited_for(named: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it takes the connection, and says nothing
        port = silent.getsockname()[1]
        there = f"127.0.0.1:{port}"
        address = f"http://{there}" if named == "PENSTOCK_SERVER" else f"postgresql://a@{there}/a"
        assert await completions("run shop.", {named: address}) == []
    assert await completions("run shop.", {named: address}) == []  # no server is there
    assert await completions("run shop.", {named: "nonsense"}) == []


async def test_no_server_is_started_for_it(tmp_path: Path) -> None:
    (tmp_path / ".penstock").mkdir()
    none = {"PENSTOCK_HOME": str(tmp_path / ".penstock"), "PENSTOCK_DATABASE_URL": ""}
    assert await completions("run shop.", none) == []
    assert not list((tmp_path / ".penstock").rglob("postmaster.pid"))
    assert await completions("run shop.", {**none, "PENSTOCK_HOME": str(tmp_path / "nowhere")}) == []


async def test_completion_loads_only_modules_of_the_typed_command() -> None:
    script = "import sys; from penstock.cli import main\ntry: main([])\nexcept SystemExit: pass\n"
    loaded = "print(sorted(name for name in sys.modules if name.startswith('penstock.cli.')))"
    asked = {"COMP_WORDS": "penstock top --on", "COMP_CWORD": "2", COMPLETING: "complete_bash"}
    said = await ran([sys.executable, "-c", script + loaded], asked)
    assert said.stdout.startswith("--once\n")
    assert "penstock.cli.top" in said.stdout
    assert "penstock.cli.demo" not in said.stdout


async def offers(typed: str, *names: str, more: Mapping[str, str] | None = None) -> None:
    """On a busy machine TAB gives up before it knows, and the person presses it again."""
    for _ in range(PRESSES):
        if (offered := await completions(typed, more)) == sorted(names):
            return
    assert offered == sorted(names), typed


async def completions(typed: str, more: Mapping[str, str] | None = None) -> list[str]:
    """Return the completions that a real bash is offered after these words, the last of which is not ended. Nothing else may
    be printed."""
    words = [*typed.split(), *([""] if typed.endswith(" ") else [])]
    script = (
        f"{await bash_script()}\n"
        f"COMP_WORDS=(penstock {' '.join(map(repr, words))}); COMP_CWORD={len(words)}; _penstock_completion penstock\n"
        'echo "${COMPREPLY[@]}"'
    )
    said = await ran(["bash", "--norc", "-c", script], more or {})
    assert (said.returncode, said.stderr) == (0, ""), said
    return sorted(said.stdout.split())


@functools.cache
def bash_script() -> asyncio.Future[str]:
    """Return the script that a shell evaluates once, when it starts."""

    async def told() -> str:
        said = await ran(["penstock", "completion", "bash"], {})
        assert (said.returncode, said.stderr) == (0, ""), said
        return said.stdout

    return asyncio.ensure_future(told())


async def ran(command: Sequence[str | Path], more: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **more}
    return await asyncio.to_thread(
        subprocess.run, command, env=env, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(("shell", "begins"), [("zsh", "#compdef penstock"), ("fish", "complete --command")])
async def test_other_shells_are_told_in_their_own_words(shell: str, begins: str) -> None:
    said = await penstock("completion", shell)
    assert (said.code, said.out.lstrip().startswith(begins)) == (0, True), said
    assert (await penstock("completion", "tcsh")).code == 2
