"""The machine and the options of a run."""

from __future__ import annotations

import os
import platform
import sysconfig
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench.run import Outcome
from bench.works.effort import Effort


@dataclass(frozen=True, slots=True)
class Ran:
    """One run. The fields are the keys of the first line of `--jsonl`, under `run`."""

    at: str
    """Day and time of its end, UTC."""
    rounds: int
    seconds: float
    """What a throughput work should take, about."""
    samples: int
    """Tasks at 20 a second, in each round."""
    cores: int
    processor: str
    memory_gib: int
    system: str
    versions: dict[str, str]
    failures: list[str]


def described(effort: Effort, outcome: Outcome) -> Ran:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return Ran(
        at=datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        rounds=effort.rounds,
        seconds=effort.seconds,
        samples=effort.samples,
        cores=os.cpu_count() or 1,
        processor=_processor(),
        memory_gib=round(memory / 2**30),
        system=f"{platform.system()} {platform.release()}",
        versions={"Python": f"{platform.python_version()} ({_build()})", **outcome.versions},
        failures=outcome.failures,
    )


def _build() -> str:
    """Return how this Python was built: optimization by a profile is worth some 13 % of its time."""
    arguments = sysconfig.get_config_var("CONFIG_ARGS") or ""
    return f"built {'with' if '--enable-optimizations' in arguments else 'without'} PGO"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
