"""Programs on executors and workers, some of which die in the midst, against their plain play.

A worker that dies makes everything late. So the programs are those whose play is the same however late anything is."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded

from penstock.errors import ExecutionFailed
from penstock.store.durable import steps
from tests.crash.processes import Fleet
from tests.durable_programs import mortal
from tests.durable_programs import statements as s
from tests.durable_programs.agreement import Disagreement, differences
from tests.durable_programs.kit_run import failed_with
from tests.durable_programs.plain_play import Play, play
from tests.durable_programs.statements import DAY, Program
from tests.durable_programs.strategies import programs
from tests.durable_programs.world import MARK, Call, World
from tests.flows.installation import Installation

PLAYS = 25
"""Late in as many ways."""
LATE = 12 * DAY
"""A worker is missed, and its work taken over, within three seconds."""
SEEDS = 60
EXAMPLES = 10
"""Seeds that are tried for each program, and programs of each."""
LEAST = 6
"""Calls, undos and children of a program that is worth its time."""
PATIENCE = 600.0
"""Seconds until a program has ended: on a machine that does much else a worker takes twenty to start."""
CHILDREN = """
with recursive below (id) as (
    select id from execution where parent = $1 union all select e.id from below b join execution e on e.parent = b.id
)
select p.params ->> 'place' as place from below join payload p on p.execution_id = below.id where p.params ? 'place'
"""
Drawn = list[tuple[Program, Play]]


def certain(program: Program) -> Play | None:
    """Return the plain play of a program that is the same however late anything is. None of any other, and of one that waits for
    what the test does not send."""
    kinds = [part for _, part in program.places]
    hours = any(isinstance(part, s.Step) and part.hours for part in kinds)
    if program.attempts > 1 or program.cancelled is not None or hours:
        return None
    if any(isinstance(part, s.Wait) or (isinstance(part, s.Child) and part.days) for part in kinds):
        return None
    plain = play(program)
    done = len(plain.world.calls) + len(plain.world.undone) + plain.world.children.total()
    if plain.outcome == ("stuck",) or done < LEAST:
        return None
    # A worker that dies each time before it starts a child starts none where a branch beside it has failed meanwhile.
    if differences(play(program, late_starts=LATE), plain, is_late=True):
        return None
    for seed in range(PLAYS):
        late = play(program, seed=seed, shuffled=True, lateness=LATE if seed % 2 else 0.0)
        if differences(late, plain, is_late=True):
            return None
    return plain


def draw(count: int, seed: int) -> Drawn:
    """Return so many programs with their plain play: at most one from each of several seeds, so that they differ."""
    seeds = (seed * 1_000_003 + number for number in range(SEEDS * count))
    drawn = list(islice((program for number in seeds for program in _draw_one(number)), count))
    assert len(drawn) == count, f"only {len(drawn)} of {count} programs whose play is certain"
    return drawn


def _draw_one(seed: int) -> Drawn:
    drawn: Drawn = []

    @seeded(seed)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs())
    def look(program: Program) -> None:
        if not drawn and (plain := certain(program)) is not None:
            drawn.append((program, plain))

    look()
    return drawn


@dataclass
class Report:
    """The outcomes of programs on services."""

    played: int = 0
    deaths: int = 0
    recoveries: int = 0
    again: int = 0
    """Calls that a dead worker had made, and that were not recorded."""
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        self.played += other.played
        self.deaths += other.deaths
        self.recoveries += other.recoveries
        self.again += other.again
        self.wrong += other.wrong

    def __str__(self) -> str:
        return (
            f"{self.played} programs, {self.deaths} workers died, {self.recoveries} attempts lost, "
            f"{self.again} calls made again, {len(self.wrong)} disagreements"
        )


async def play_on_services(
    house: Installation,
    fleet: Fleet,
    drawn: Drawn,
    calls: Path,
    *,
    workers: int = 2,
) -> Report:
    """Play programs at the same time on an executor and workers that die, and compare each with its plain play."""
    calls.touch()
    await house.apply(mortal.program, mortal.child)
    fleet.executor()
    report = Report()
    keeping = asyncio.create_task(_keep(fleet, workers, report))
    try:
        ids = [
            await house.client.start("p.program", {"text": mortal.to_text(program)}) for program, _ in drawn
        ]
        outcomes = await asyncio.gather(
            *(_played(house, id, program) for id, (program, _) in zip(ids, drawn, strict=True))
        )
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])
    noted = [line.split(" ", 3) for line in calls.read_text().splitlines()]
    for id, outcome, (program, plain) in zip(ids, outcomes, drawn, strict=True):
        played, lost = await _recorded(house, id, outcome)
        of_run = [words for words in noted if words[0] == str(id)]
        wrong = [words[3] for words in of_run if words[2] == "wrong"]
        again = list(_again(played.world, of_run, lost, plain, wrong))
        if wrong := wrong + differences(played, plain, is_late=True):
            report.wrong.append("\n".join((*wrong, f"run {id}, lost attempts: {lost}", repr(program))))
        report.played += 1
        report.recoveries += lost
        report.again += sum(again)
    return report


def check_report(report: Report) -> None:
    """Raise Disagreement if there is any, or if no attempt was lost."""
    if report.wrong:
        raise Disagreement("\n\n".join((str(report), *report.wrong)))
    assert report.recoveries, "no worker died with an attempt"


async def _keep(fleet: Fleet, count: int, report: Report) -> None:
    """Start another worker for each one that has died."""
    living = [_worker(fleet) for _ in range(count)]
    while True:
        for number, worker in enumerate(living):
            if worker.poll() is not None:
                fleet.alive.remove(worker)
                report.deaths += 1
                living[number] = _worker(fleet)
        await asyncio.sleep(0.1)


def _worker(fleet: Fleet) -> Any:
    return fleet.start("worker", "--module", "tests.durable_programs.mortal", "--concurrency", "10")


async def _played(house: Installation, id: UUID, program: Program) -> tuple[Any, ...]:
    sending = asyncio.create_task(_send(house, id, program))
    try:
        return ("completed", await house.client.result(id, timeout=PATIENCE))
    except ExecutionFailed as error:
        # The sentence that people get names the first cause. The stored error is what the function raised.
        rows = await house.rows("select error from result where execution_id = $1 and error is not null", id)
        stored = orjson.loads(rows[0]["error"]) if rows else None
        return failed_with(
            f"p.program failed: {stored['type']}: {stored['message']}" if stored else str(error)
        )
    except TimeoutError:
        return ("stuck",)
    finally:
        sending.cancel()


async def _send(house: Installation, id: UUID, program: Program) -> None:
    begin = asyncio.get_running_loop().time()
    for after, name, value in sorted(program.signals()):
        await asyncio.sleep(begin + after / DAY * mortal.DAY_TAKES - asyncio.get_running_loop().time())
        await house.client.signal(id, name, value)


async def _recorded(house: Installation, id: UUID, outcome: tuple[Any, ...]) -> tuple[Play, int]:
    """Return what is recorded of a run, and how many of its attempts were lost."""
    world = World()
    played = Play(outcome, world)
    for step in sorted(await steps.read(house.session, [id]), key=lambda step: step.told or 0):
        text = step.result or step.error or ""
        if step.kind == "state":
            played.state[step.name.partition("/")[2]] = orjson.loads(step.result or "null")
        elif step.kind == "step" and (places := MARK.findall(text)):
            undo = places[0].startswith("undo ")
            made = Call(places[0].removeprefix("undo "), 0.0, 0.0, recorded=True)
            (world.undone if undo else world.calls).extend([made] * step.tries)
    for row in await house.rows(CHILDREN, id):
        world.children[row["place"]] += 1
    [row] = await house.rows("select recoveries from execution where id = $1", id)
    return played, row["recoveries"]


def _again(world: World, noted: list[list[str]], lost: int, plain: Play, wrong: list[str]) -> Iterator[int]:
    """Yield how often each step was called again, and note what no lost attempt explains."""
    for what, recorded in (("call", world.calls), ("undo", world.undone)):
        made = Counter(words[3] for words in noted if words[2] == what)
        kept = Counter(call.place for call in recorded)
        for place in made.keys() | kept.keys():
            again = made[place] - kept[place]
            if place in plain.loose:
                continue
            if not 0 <= again <= lost:
                wrong.append(f"{what} of {place}: made {made[place]} times, recorded {kept[place]}")
            yield max(again, 0)
