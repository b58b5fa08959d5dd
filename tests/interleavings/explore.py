"""The order of exploration: all orders with few switches first, then random ones; each is played once."""

from __future__ import annotations

import asyncio
import random
import traceback
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import asyncpg

from tests.interleavings import gates
from tests.interleavings.case import Case
from tests.interleavings.scene import Scene
from tests.interleavings.stage import FAULTS, Order, Stage
from tests.servers import databases
from tests.servers.postgres import Postgres

SWITCHES = 2
"""How often somebody who could go on is left standing for another: most faults need no more than two."""


@dataclass
class Found:
    """The played orders. `seen`: distinct orders. `exhausted`: there are no others with so few switches."""

    seen: set[str] = field(default_factory=set)
    exhausted: bool = False
    wrong: list[str] = field(default_factory=list)


@asynccontextmanager
async def gated(server: Postgres, migrated: str) -> AsyncIterator[str]:
    """The name of a copy of the migrated database that has gates, to make theatres from. Of its partitions those of the
    days to come are gone: each costs every statement on its table."""
    name = databases.new_name()
    url = await databases.create(server, name, template=migrated)
    try:
        connection = await asyncpg.connect(url)
        await gates.install(connection)
        await connection.execute(gates.LATER_DAYS)
        await connection.close()
        yield name
    finally:
        await databases.drop(server, name)


@asynccontextmanager
async def theatre(server: Postgres, gated: str, case: Case) -> AsyncIterator[tuple[Scene, Stage]]:
    """A database of the case's own, its definitions, and a stage."""
    name = databases.new_name()
    scene = Scene(await databases.create(server, name, template=gated))
    try:
        stage = await Stage.open(scene.address)
        scene.definitions = case.definitions
        await scene.apply(*case.definitions)
        try:
            yield scene, stage
        finally:
            await stage.close()
    finally:
        await scene.database.close()
        await databases.drop(server, name)


async def play(
    scene: Scene,
    stage: Stage,
    case: Case,
    prefix: str,
    rest: random.Random | None = None,
    faults: float = 0.0,
) -> Order:
    """Play one order. `prefix` chooses the session of each step. After it the session that went last goes on, or
    `rest` chooses. `rest` also lets one of FAULTS happen at so many of the steps. Raises the violation."""

    def fault() -> str | None:
        return rest.choice(FAULTS) if rest is not None and rest.random() < faults else None

    def choose(step: int, enabled: tuple[int, ...], last: int | None) -> int:
        if step < len(prefix) and int(prefix[step]) in enabled:
            return int(prefix[step])
        if rest is not None:
            return rest.choice(enabled)
        return last if last in enabled else enabled[0]

    await scene.begin()
    scene.draw = rest or random.Random(prefix)
    order = await stage.play(await case.prepare(scene), choose, fault if faults else None)
    if case.after is not None:
        await case.after(scene)
    await scene.play_out()
    if case.check is not None:
        await case.check(scene, order)
    await scene.ended_well()
    return order


def _switches(order: Order, step: int, who: int) -> int:
    """Count how often a session was left standing up to `step`, if `who` goes next."""
    choices = [*order.choices[:step], who]
    return sum(
        1
        for n in range(1, len(choices))
        if choices[n] != choices[n - 1] and choices[n - 1] in order.enabled[n]
    )


async def explore(scene: Scene, stage: Stage, case: Case, most: int, seed: int) -> Found:
    """Play `most` distinct orders: those in which one goes after the other, then those with few switches in an order that the
    seed shuffles, then random ones."""
    result, draw = Found(), random.Random(f"{case.name} {seed}")
    one_by_one, frontier = [""], list[str]()
    queued = {""}
    tries = 0
    while len(result.seen) < most and tries < most * 2 and not result.wrong:
        tries += 1
        choices = one_by_one or frontier
        result.exhausted |= not choices
        prefix = choices.pop(draw.randrange(len(choices))) if choices else ""
        chooser = random.Random(f"{case.name} {seed} {tries}") if result.exhausted else None
        try:
            order = await play(scene, stage, case, prefix, chooser)
        except Exception:
            played = "".join(str(n) for n in stage.played)
            result.wrong.append(f"{case.name}, order {played}:\n{traceback.format_exc(limit=-4)}")
            break
        result.seen.add(str(order))
        if chooser is None:
            for step in range(len(prefix), len(order.choices)):
                for number in order.enabled[step]:
                    other = "".join(map(str, order.choices[:step])) + str(number)
                    if number == order.choices[step] or other in queued:
                        continue
                    if (switches := _switches(order, step, number)) <= SWITCHES:
                        queued.add(other)
                        (frontier if switches else one_by_one).append(other)
    return result


async def draw(scene: Scene, stage: Stage, case: Case, seeds: Iterable[object], faults: float = 0.0) -> Found:
    """Play an order that each of these seeds draws, with so many steps that go wrong."""
    result = Found()
    for seed in seeds:
        try:
            order = await play(scene, stage, case, "", random.Random(f"{case.name} {seed}"), faults)
        except Exception:
            result.wrong.append(
                f"{case.name}, seed {seed}, faults {faults}:\n{traceback.format_exc(limit=-4)}"
            )
            break
        result.seen.add(str(order))
    return result


Played = Mapping[str, asyncio.Task[Found]]
"""What is played, by its name. A test waits for its own alone."""


@asynccontextmanager
async def in_lanes(
    lanes: int, names: Iterable[str], one: Callable[[str], Coroutine[None, None, Found]]
) -> AsyncIterator[Played]:
    """Each of these, so many at a time: while one waits for its server, another goes on."""
    room = asyncio.Semaphore(lanes)

    async def lane(name: str) -> Found:
        async with room:
            return await one(name)

    played = {name: asyncio.create_task(lane(name)) for name in names}
    try:
        yield played
    finally:
        for task in played.values():
            task.cancel()
        await asyncio.wait(played.values())
