"""The cost of a piece of work: CPU seconds of every process group, write-ahead log, committed transactions.

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
    wal: int | None
    commits: int | None


@dataclass(frozen=True)
class Cost:
    """The differences between two readings."""

    seconds: float
    """Wall time."""
    cpu: dict[str, float]
    """CPU seconds by group."""
    foreign: float
    """Share (0..1) of the machine taken by processes that are not part of the run."""
    wal: int | None
    """Bytes of write-ahead log; None without PostgreSQL."""
    commits: int | None
    """Transactions that wrote (that took a transaction id), on the whole server; None without PostgreSQL."""


def processes(groups: Groups) -> tuple[dict[str, list[int]], dict[int, float]]:
    """Return the ids of all processes in each group's trees, and the CPU seconds used so far by every process of the machine."""
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

    def tree(pid: int) -> list[int]:
        return [pid, *(below for child in children.get(pid, ()) for below in tree(child))]

    return {name: [below for pid in pids for below in tree(pid)] for name, pids in groups.items()}, used


def cpu_seconds(groups: Groups) -> dict[str, float]:
    """CPU seconds used so far by each group. A process that is gone counts nothing."""
    trees, used = processes(groups)
    return {name: sum(used.get(pid, 0.0) for pid in pids) for name, pids in trees.items()}


def memory(groups: Groups) -> dict[str, list[float]]:
    """MiB of each process by group: the proportional set size, in which a page that several processes share counts for
    each of them in part, so that the sum is what they take together."""
    return {name: [*filter(None, map(_set_size, pids))] for name, pids in processes(groups)[0].items()}


def _set_size(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:  # it ended, or belongs to the kernel
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def machine_seconds() -> float:
    """CPU seconds that the whole machine has been busy."""
    user, nice, system, _idle, _wait, *interrupts = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + sum(interrupts)) / TICKS


async def read(groups: Groups, postgres: asyncpg.Connection | None) -> Reading:
    """Read every counter now, without PostgreSQL's where it has no part."""
    if postgres is None:
        return Reading(time.time(), cpu_seconds(groups), machine_seconds(), None, None)
    wal = await postgres.fetchval("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
    commits = await postgres.fetchval("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
    return Reading(time.time(), cpu_seconds(groups), machine_seconds(), wal, commits)


def between(earlier: Reading, later: Reading) -> Cost:
    """Return the cost from one reading to a later one."""
    seconds = later.seconds - earlier.seconds
    cpu = {name: later.cpu[name] - earlier.cpu[name] for name in later.cpu}
    foreign = later.machine - earlier.machine - sum(cpu.values())
    return Cost(
        seconds=seconds,
        cpu=cpu,
        foreign=max(0.0, foreign) / (seconds * (os.cpu_count() or 1)),
        wal=_grown(earlier.wal, later.wal),
        commits=_grown(earlier.commits, later.commits),
    )


def _grown(earlier: int | None, later: int | None) -> int | None:
    return None if earlier is None or later is None else later - earlier


async def transactions(database: str, postgres: asyncpg.Connection) -> int:
    """Transactions that `database` has committed or rolled back, reads included.

    Idle sessions hand in their counts up to 10 s late, so this serves windows much longer than that.
    """
    count: int = await postgres.fetchval(
        "select xact_commit + xact_rollback from pg_stat_database where datname = $1", database
    )
    return count
