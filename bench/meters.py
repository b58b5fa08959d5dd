"""What a piece of work cost: CPU seconds of every process group, write-ahead log, committed transactions.

CPU is user + system time of whole process trees, read from /proc, with the time of children that have ended
(the kernel adds it to the parent that waited for them). The kernel counts in ticks of 10 ms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg

TICKS = os.sysconf("SC_CLK_TCK")

Groups = Mapping[str, Sequence[int]]
"""Process groups by name, each as the ids of the processes at the roots of its trees."""


@dataclass(frozen=True)
class Reading:
    """Counters at one instant; the difference of two is a cost."""

    seconds: float
    cpu: dict[str, float]
    machine: float
    wal: int
    commits: int


@dataclass(frozen=True)
class Cost:
    """What happened between two readings."""

    seconds: float
    """Wall time."""
    cpu: dict[str, float]
    """CPU seconds by group."""
    foreign: float
    """Share (0..1) of the machine taken by processes that are no part of the run."""
    wal: int
    """Bytes of write-ahead log."""
    commits: int
    """Transactions that wrote (that took a transaction id), on the whole server."""


def cpu_seconds(groups: Groups) -> dict[str, float]:
    """CPU seconds used so far by each group. A process that is gone counts nothing."""
    children: dict[int, list[int]] = {}
    used: dict[int, float] = {}
    for folder in os.listdir("/proc"):
        if not folder.isdigit():
            continue
        try:
            text = Path("/proc", folder, "stat").read_text()
        except OSError:  # ended since the listing
            continue
        fields = text[text.rindex(")") + 2 :].split()  # the name before it may hold anything
        children.setdefault(int(fields[1]), []).append(int(folder))
        used[int(folder)] = sum(int(ticks) for ticks in fields[11:15]) / TICKS

    def tree(pid: int) -> float:
        return used.get(pid, 0.0) + sum(tree(child) for child in children.get(pid, ()))

    return {name: sum(tree(pid) for pid in pids) for name, pids in groups.items()}


def machine_seconds() -> float:
    """CPU seconds that the whole machine has been busy."""
    user, nice, system, _idle, _wait, *rest = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(rest)) / TICKS


async def read(groups: Groups, postgres: asyncpg.Connection) -> Reading:
    """Read every counter now."""
    wal = await postgres.fetchval("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
    commits = await postgres.fetchval("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    return Reading(time.time(), cpu_seconds(groups), machine_seconds(), wal, commits)


def between(before: Reading, after: Reading) -> Cost:
    """The cost from one reading to a later one."""
    seconds = after.seconds - before.seconds
    cpu = {name: after.cpu[name] - before.cpu[name] for name in after.cpu}
    foreign = after.machine - before.machine - sum(cpu.values())
    return Cost(
        seconds=seconds,
        cpu=cpu,
        foreign=max(0.0, foreign) / (seconds * (os.cpu_count() or 1)),
        wal=after.wal - before.wal,
        commits=after.commits - before.commits,
    )


async def transactions(database: str, postgres: asyncpg.Connection) -> int:
    """Transactions that `database` has committed or rolled back, reads included.

    Idle sessions hand in their counts up to 10 s late, so this serves windows much longer than that.
    """
    count: int = await postgres.fetchval(
        "select xact_commit + xact_rollback from pg_stat_database where datname = $1", database
    )
    return count
