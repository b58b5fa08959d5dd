from __future__ import annotations

import os
import subprocess
import sys

import asyncpg

from bench import meters

BUSY = "import time\nwhile time.process_time() < 0.2: pass\n"
PARENT_OF_BUSY = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BUSY!r}])
print("done", flush=True)
input()
"""


def test_the_time_of_a_child_that_has_ended_counts_in_its_tree() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT_OF_BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with parent:
        assert parent.stdout
        assert parent.stdout.readline() == b"done\n"
        used = meters.cpu_seconds({"tree": [parent.pid], "own": [os.getpid()], "nobody": []})
        parent.communicate(b"\n")
    assert used["tree"] >= 0.18  # the kernel counts in hundredths, of each process and kind
    assert used["own"] >= used["tree"]  # it is a child of ours
    assert used["nobody"] == 0


def test_a_process_that_is_gone_counts_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert meters.cpu_seconds({"gone": [child.pid]}) == {"gone": 0.0}


async def test_a_reading_counts_the_log_and_the_transactions_that_wrote(empty_database: str) -> None:
    connection = await asyncpg.connect(empty_database)
    await connection.execute("create table t (x int)")
    earlier = await meters.read({"us": [os.getpid()]}, connection)
    await connection.execute("select 1")
    await connection.execute("insert into t values (1)")
    cost = meters.between(earlier, await meters.read({"us": [os.getpid()]}, connection))
    await connection.close()
    assert cost.commits
    assert cost.commits >= 1  # others may write on the same server
    assert cost.wal
    assert cost.cpu["us"] >= 0
    assert cost.foreign >= 0


async def test_without_postgresql_nothing_of_it_is_read() -> None:
    nobody: meters.Groups = {"us": [os.getpid()]}
    cost = meters.between(await meters.read(nobody, None), await meters.read(nobody, None))
    assert (cost.wal, cost.commits) == (None, None)


def test_memory_is_told_for_each_process_of_a_tree() -> None:
    command = [sys.executable, "-c", "held = bytearray(64 * 2**20); print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout
        child.stdout.readline()
        usage = meters.memory({"child": [child.pid], "own": [os.getpid()]})
        child.communicate(b"\n")
    assert len(usage["child"]) == 1
    assert 64 <= usage["child"][0] <= 128
    assert len(usage["own"]) >= 2  # the child's is among them
