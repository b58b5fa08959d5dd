"""A whole run: servers, rounds of all systems in turn (noise then hits all alike), and medians over them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import asyncpg
from rich.console import Console

from bench import peers, session
from bench.figures import Figure, beside_probe, medians
from bench.servers import Servers, started
from bench.systems import System
from bench.works import WORKS
from bench.works.effort import Effort
from penstock.errors import ConfigurationError


@dataclass
class Outcome:
    """What a run found."""

    figures: list[Figure] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


async def run(systems: Sequence[System], works: Sequence[str], effort: Effort, console: Console) -> Outcome:
    """Measure `works` on `systems`. A system that fails is named in the outcome, and the others go on.

    Peers that are asked for are installed first. Raises ConfigurationError when that fails, or off Linux.
    """
    if not os.path.exists("/proc/stat"):
        raise ConfigurationError(
            "The benchmark reads CPU time from /proc.", hint="Run it on Linux, in a container for instance."
        )
    if any(system.peer for system in systems) and peers.missing():
        console.print("installing the peers into .venv-bench (some minutes, once) ...", style="dim")
        await asyncio.to_thread(peers.install)
    outcome, began = Outcome(), time.monotonic()
    console.print("starting PostgreSQL and RabbitMQ ...", style="dim")
    async with started(broker=any(system.broker for system in systems)) as servers:
        outcome.versions["PostgreSQL"] = await servers.postgres.version()
        for number in range(effort.rounds):
            now = [name for name in works if number == 0 or not WORKS[name].once]
            for system in systems:
                if not set(now).intersection(system.works or now):
                    continue
                lead = f"{time.monotonic() - began:4.0f} s  round {number + 1} of {effort.rounds}"
                console.print(f"{lead}  {system.name} on {system.transport}", style="dim")
                try:
                    await _round(system, now, effort, servers, outcome)
                except (session.Stalled, TimeoutError, asyncpg.PostgresError) as failure:
                    what = f"{system.name} on {system.transport}: {failure or 'too slow'}"
                    console.print(what, style="red", markup=False)
                    outcome.failures.append(what.split("\n")[0])
    outcome.figures = beside_probe(medians(outcome.figures))
    return outcome


async def _round(
    system: System, works: Sequence[str], effort: Effort, servers: Servers, outcome: Outcome
) -> None:
    """All works on one system, once."""
    async with session.opened(system, servers) as running:
        outcome.versions[system.name] = running.about["version"]
        for name in works:
            if WORKS[name].needs in running.about["orders"] and name in (system.works or WORKS):
                for metric, (value, unit) in (await WORKS[name].run(running, effort)).items():
                    outcome.figures.append(Figure(system.name, system.transport, name, metric, value, unit))
