"""The command lines of the processes that a run starts show no secret: every user of the machine can read them."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.crash.processes import ROOT

MODULE = """
import asyncio, subprocess
from typing import Annotated
from penstock import Secret, action, command_action

@action(pack="vault", executor="process")
def in_process(key: Annotated[str, Secret]) -> int:
    return 1

@action(pack="vault")
async def slowly(key: Annotated[str, Secret]) -> None:
    await asyncio.sleep(60)

command_action("vault.program", ["sleep", "61.25"], parameters={"key": {"type": "string", "secret": True}})
"""
PASSWORD = f"mY-dB-pAsSwOrD-{secrets.token_hex(4)}"


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc")
async def test_no_process_of_an_embedded_installation_has_the_environment_in_its_command_line(
    tmp_path: Path,
) -> None:
    (tmp_path / "vault.py").write_text(MODULE)
    (tmp_path / "key.json").write_text(f'{{"key": "{PASSWORD}"}}')
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment |= {
        "MY_DB_PASSWORD": PASSWORD,
        "PYTHONPATH": str(ROOT),
        "TMPDIR": str(tmp_path),
        "PENSTOCK_GRACE": "1",
    }

    def penstock(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "penstock", *words],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    command = [sys.executable, "-m", "penstock", "dev", "--module", "vault.py"]
    dev = await asyncio.create_subprocess_exec(*command, cwd=tmp_path, env=environment)
    try:
        async with asyncio.timeout(90):
            while (
                await asyncio.to_thread(penstock, "run", "vault.in_process", "@key.json", "--wait")
            ).returncode:
                await asyncio.sleep(0.2)
            for ref in ("vault.slowly", "vault.program"):
                assert not (await asyncio.to_thread(penstock, "run", ref, "@key.json")).returncode
            while not any("sleep 61.25" in line for line in lines_of(PASSWORD)):
                await asyncio.sleep(0.1)
        found = lines_of(PASSWORD)
        for program in ("guard.py", "postgres", "penstock_worker", "penstock dev"):
            assert any(program in line for line in found), program
        assert not [line for line in found if PASSWORD in line]
    finally:
        dev.terminate()
        await dev.wait()


def lines_of(mark: str) -> list[str]:
    """The command lines of all processes that have `mark` in their environment or in their command line, and of what they
    have started without it."""
    found: dict[int, str] = {}
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if mark in line or mark in process.environ().values():
                found[process.pid] = line
                found |= {child.pid: " ".join(child.cmdline()) for child in process.children()}
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return list(found.values())
