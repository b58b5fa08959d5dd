"""A whole run: servers, rounds of all systems in turn (noise then hits all alike), and medians over them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console

from bench import peers, session
from bench.errors import CannotMeasure
from bench.figures import Figure, Measured, beside_probe, medians
from bench.full_database import new_full_database
from bench.servers import Servers, started
from bench.systems import TEMPLATE, System
from bench.works import WORKS
from bench.works.effort import Effort


@dataclass
class Outcome:
    """The findings of a run."""

    figures: list[Figure] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    """What failed, in a line each: the system, the work, and why."""

    def add(self, system: System, work: str, measured: Measured) -> None:
        for metric, (value, unit) in measured.items():
            self.figures.append(Figure(system.name, system.transport, work, metric, value, unit))

    def fail(self, message: str, console: Console) -> None:
        console.print(message, style="red", markup=False)
        self.failures.append(message.split("\n")[0])


async def run(
    systems: Sequence[System], works: Sequence[str], effort: Effort, console: Console, archived: int = 0
) -> Outcome:
    """Measure `works` on `systems`. What fails is named in the outcome, and the others go on. `archived`: how many have ended
    in the database that is full.

    Peers that are asked for are installed first. Raises CannotMeasure when that fails, or off Linux.
    """
    if not os.path.exists("/proc/stat"):
        raise CannotMeasure(
            "The benchmark reads CPU time from /proc.", hint="Run it on Linux, in a container for instance."
        )
    outcome, began = Outcome(), time.monotonic()
    systems = await _installed(systems, outcome, console)
    console.print("starting PostgreSQL and RabbitMQ ...", style="dim")
    async with started(broker=any(system.broker for system in systems)) as servers:
        outcome.versions["PostgreSQL"] = await servers.postgres.version()
        if archived:
            console.print(f"filling a database with {archived:,} executions ...", style="dim")
            await new_full_database(servers.postgres, TEMPLATE, archived)
        for number in range(effort.rounds):
            now = [name for name in works if number == 0 or not WORKS[name].once]
            for system in systems:
                if not any(map(system.takes_part, now)):
                    continue
                lead = f"{time.monotonic() - began:4.0f} s  round {number + 1} of {effort.rounds}"
                console.print(f"{lead}  {system.name} on {system.transport}", style="dim")
                await _round(system, now, effort, servers, outcome, console)
    outcome.figures = beside_probe(medians(outcome.figures))
    return outcome


async def _installed(systems: Sequence[System], outcome: Outcome, console: Console) -> list[System]:
    """Install what the systems need. Those whose part from npm is not to be had are failures, and left out."""
    if any(system.peer for system in systems) and peers.missing():
        console.print("installing the peers into .venv-bench (some minutes, once) ...", style="dim")
        await asyncio.to_thread(peers.install)
    if not any(system.npm for system in systems) or not peers.node_missing():
        return list(systems)
    console.print("installing the peers that npm has ...", style="dim")
    try:
        await asyncio.to_thread(peers.install_node)
    except (CannotMeasure, OSError) as error:
        for system in systems:
            if system.npm:
                outcome.fail(f"{system.name} on {system.transport}: {error}", console)
        return [system for system in systems if not system.npm]
    return list(systems)


async def _round(
    system: System,
    works: Sequence[str],
    effort: Effort,
    servers: Servers,
    outcome: Outcome,
    console: Console,
) -> None:
    """Run all works on one system, once. After a failed work, the system is started again for the next one."""
    remaining = [name for name in works if system.takes_part(name)]
    while remaining:
        name = "start"
        try:
            async with session.opened(system, servers) as running:
                outcome.versions[system.name] = running.about["version"]
                while remaining:
                    name = remaining.pop(0)
                    if running.can(WORKS[name].needs):
                        measured = await WORKS[name].run(running, effort)
                        outcome.add(system, name, measured)
                name = "stop"
        except Exception as error:
            # Whatever it was, it is this system's: it is named at the end, and the others go on.
            message = str(error) or type(error).__name__
            outcome.fail(f"{system.name} on {system.transport}, {name}: {message}", console)
            if name == "start":
                return
