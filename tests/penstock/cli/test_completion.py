"""TAB completes: a real bash asks, with what `penstock completion bash` told it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.penstock.cli.commands import penstock

BIN = Path(sys.executable).parent


@pytest.mark.parametrize(
    ("typed", "completed"),
    [("wor", "worker workers workflow"), ("workers cor", "cordon"), ("top --on", "--once")],
)
def test_bash_completes_commands_their_parts_and_options(typed: str, completed: str) -> None:
    words = typed.split()
    script = (
        'eval "$(penstock completion bash)" || exit 1\n'
        f"COMP_WORDS=(penstock {typed}); COMP_CWORD={len(words)}; _penstock_completion penstock\n"
        'echo "${COMPREPLY[@]}"'
    )
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(ran.stdout.split()) == sorted(completed.split()), ran


@pytest.mark.parametrize(("shell", "begins"), [("zsh", "#compdef penstock"), ("fish", "complete --command")])
async def test_other_shells_are_told_in_their_own_words(shell: str, begins: str) -> None:
    said = await penstock("completion", shell)
    assert (said.code, said.out.lstrip().startswith(begins)) == (0, True), said
    assert (await penstock("completion", "tcsh")).code == 2
