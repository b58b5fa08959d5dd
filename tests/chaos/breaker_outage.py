"""A service that is down under load, behind a breaker, while executors and workers are killed. Exit code 1: a promise was broken.

    python -m tests.chaos.breaker_outage --seconds 60 --rate 500
    python -m tests.chaos.breaker_outage --seconds 60 --rate 500 --transport rabbitmq
    python -m tests.chaos.breaker_outage --seconds 60 --rate 500 --counts-running

Two executors, two workers and a client. The service notes each call in a file, and the program compares the notes with the
history. While the service is down, only the threshold, the calls under way at the opening and the probes reach it. If the breaker
counts running calls, only the threshold and the probes do, and the calls of killed workers. After that all completes, in order.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from penstock.language.terms.action_ref import ActionRef
from penstock.settings import Settings
from penstock.store.schema import migrate
from penstock.store.session.database import Row
from tests.chaos import called_service
from tests.chaos.called_service import PROBE_S, THRESHOLD, Call, Service
from tests.chaos.limits import LOG, out_of_order
from tests.crash.processes import Fleet
from tests.flows.installation import Installation
from tests.servers import choose
from tests.servers.postgres import FAST

EXECUTORS, WORKERS, CONCURRENCY = 2, 2, 50
LEAD_S = 2.0
"""The time of load before the outage and after it."""
OPENINGS = "select distinct extract(epoch from opened_at)::float8 as at from breaker"
ATTEMPTS = """
select h.execution_id::text as execution, h.attempt, extract(epoch from h.at)::float8 as claimed,
    extract(epoch from h.next)::float8 as ended, t.outcome
from (
    select execution_id, attempt, at, new, lead(at) over (partition by execution_id order by at) as next from history
    where new <> 'canceling') h
left join attempt t on t.execution_id = h.execution_id and t.attempt = h.attempt
where h.new = 'running'
"""
PROBED = "select from breaker where probes > 0"
FIRST_ADMISSIONS = """
select (p.params ->> 'n')::integer as n, max(a.seq) as seq, extract(epoch from max(a.admitted_at))::float8 as at
from admission a join payload p on p.execution_id = a.execution_id where a.attempt = 1 group by 1 order by 2
"""
OPEN = "select 1 where not exists (select from execution where finished_at is null)"


@dataclass(frozen=True)
class Outage:
    """The figures of an outage. Times are in seconds."""

    submitted: int
    completed: int
    seconds: float
    drained: float
    kills: int
    before: int
    """Calls of the service while it was down, until the breaker opened."""
    counted: int
    """Failures that were committed until the breaker opened."""
    under_way: int
    """Calls of attempts that were claimed before the opening, and reached the service after it."""
    probes: int
    """Calls after the opening that were admitted after it."""
    lost: int
    """Calls of the service while it was down that were not probes, and were lost with their workers."""
    lost_probes: int
    beside: int
    """Probes that began while another attempt that was admitted after the opening was under way."""
    early: int
    """Probes that began sooner than the breaker's probe time after a failed one."""
    out_of_order: int
    overtaken: int
    """Executions that were admitted for the first time after one with a higher number."""
    openings: int
    counts_running: bool

    def __str__(self) -> str:
        calls = self.before + self.under_way + self.probes
        return (
            f"{self.submitted} executions, the service down for {self.seconds:.0f} s, {self.kills} kills, breaker opened "
            f"{self.openings} times\n"
            f"calls that reached the service while it was down: {calls} = {self.before} until the opening ({self.counted} "
            f"counted, threshold {THRESHOLD}; {self.lost} lost with a worker) + {self.under_way} under way at it + "
            f"{self.probes} probes "
            f"({self.lost_probes} lost with a worker; {self.beside} beside another, {self.early} too early)\n"
            f"{self.completed} completed, the last one {self.drained:.1f} s after the service came back; "
            f"admissions out of order {self.out_of_order}, overtaken {self.overtaken}"
        )

    def faults(self) -> list[str]:
        """Return the broken promises."""
        at_most = THRESHOLD + (self.lost if self.counts_running else WORKERS * CONCURRENCY)
        probes = 1 + int(self.seconds / PROBE_S) + self.lost_probes
        promises = {
            "not all completed": self.completed == self.submitted,
            f"more than {at_most} calls until all under way had ended": self.before + self.under_way
            <= at_most,
            f"the breaker opened at {self.counted} failures": self.counted >= THRESHOLD,
            f"more than {probes} probes": self.probes <= probes,
            "two probes at once": self.beside == 0,
            "a probe too early": self.early == 0,
            "admissions out of order": self.out_of_order == 0,
            "executions overtaken": self.overtaken == 0,
        }
        return [fault for fault, is_kept in promises.items() if not is_kept]


async def run(
    house: Installation, database: str, broker: str | None, folder: Path,
    *, seconds: float, rate: int, kill_every: float, seed: int, counts_running: bool = False,
) -> Outage:  # fmt: skip
    """Stop the service under `rate` starts a second, and kill a process every `kill_every` seconds (0: none). The service stays
    down for `seconds`, and until a probe has failed: where both workers were killed, the breaker opens late."""
    service, draw = Service(folder), random.Random(seed)
    pay = called_service.pay_with_care if counts_running else called_service.pay
    await house.apply(pay)
    with Fleet(
        database, broker, folder / "services.log",
        heartbeat_interval=1.0, stale_threshold=5.0, sweep_interval=0.5, restage_age=5.0,
    ) as fleet:  # fmt: skip
        fleet.environment[called_service.FOLDER] = str(folder)
        roles: dict[int, str] = {}

        def start(role: str) -> None:
            module = ("--module", "tests.chaos.called_service", "--concurrency", str(CONCURRENCY))
            roles[fleet.start(role, *(module if role == "worker" else ())).pid] = role

        for role in ["executor"] * EXECUTORS + ["worker"] * WORKERS:
            start(role)
        await house.until("select from process having count(*) = $1", EXECUTORS + WORKERS, seconds=120)
        openings: set[float] = set()
        is_done = asyncio.Event()

        async def watch() -> None:
            while not is_done.is_set():
                openings.update(row["at"] for row in await house.rows(OPENINGS))
                await asyncio.sleep(0.1)

        async def kill() -> None:
            while kill_every and not await _is_set_within(is_done, kill_every):
                victim = draw.choice(fleet.alive)
                fleet.kill(victim)
                start(roles.pop(victim.pid))

        beside = [asyncio.create_task(watch()), asyncio.create_task(kill())]
        submitting = asyncio.create_task(_submit(house, pay, rate, 2 * LEAD_S + seconds))
        await asyncio.sleep(LEAD_S)
        service.stop()
        down = time.time()
        await asyncio.sleep(seconds)
        await house.until(PROBED, seconds=60)
        service.start()
        up = time.time()
        submitted = await submitting
        await house.until(OPEN, seconds=120 + submitted / 50)
        drained = time.time() - up
        is_done.set()
        await asyncio.gather(*beside)
        await house.quiet(60)
    await house.sound()
    first = min((at for at in openings if at >= down), default=up)
    attempts = {(row["execution"], row["attempt"]): row for row in await house.rows(ATTEMPTS)}
    calls = [call for call in service.calls() if call.is_refused]
    late = [call for call in calls if call.at > first]
    probes = [call for call in late if attempts[call.execution, call.attempt]["claimed"] > first]
    others = set(calls) - set(probes)
    beside_others, early = _spaced(probes, attempts)
    [[completed]] = await house.rows("select count(*) from execution where status = 'completed'")
    return Outage(
        submitted=submitted, completed=completed, seconds=up - down, drained=drained, kills=fleet.killed,
        before=len(calls) - len(late),
        counted=sum(row["outcome"] == "failed" and row["ended"] <= first for row in attempts.values()),
        under_way=len(late) - len(probes), probes=len(probes),
        lost=sum(attempts[call.execution, call.attempt]["outcome"] == "lost" for call in others),
        lost_probes=sum(attempts[probe.execution, probe.attempt]["outcome"] == "lost" for probe in probes),
        beside=beside_others, early=early,
        out_of_order=out_of_order(await house.rows(LOG)),
        overtaken=_overtaken(await house.rows(FIRST_ADMISSIONS), first),
        openings=len(openings),
        counts_running=counts_running,
    )  # fmt: skip


async def _submit(house: Installation, pay: ActionRef[..., int], rate: int, seconds: float) -> int:
    """Start executions with increasing numbers, in order. Return how many."""
    began, count = time.monotonic(), 0
    while (elapsed := time.monotonic() - began) < seconds:
        due = int(elapsed * rate)
        if due > count:
            await house.client.start_many(pay, [{"n": n} for n in range(count, due)])
            count = due
        await asyncio.sleep(0.05)
    return count


async def _is_set_within(event: asyncio.Event, seconds: float) -> bool:
    """Wait at most so long for an event. Return true if it is set."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _spaced(probes: Sequence[Call], attempts: dict[tuple[str, int], Row]) -> tuple[int, int]:
    """Count the probes beside another, and those that came too soon after a failed one."""
    beside = early = 0
    for place, probe in enumerate(probes[1:], 1):
        previous = attempts[probes[place - 1].execution, probes[place - 1].attempt]
        claimed = attempts[probe.execution, probe.attempt]["claimed"]
        beside += claimed < previous["ended"]
        early += previous["outcome"] == "failed" and claimed < previous["ended"] + PROBE_S
    return beside, early


def _overtaken(rows: Sequence[Row], opened: float) -> int:
    """Count the executions whose last admission for a first attempt came after that of a higher number. Only admissions after the
    opening count, since all that are under way before it start at once."""
    highest = -1
    overtaken = 0
    for row in rows:
        if row["at"] > opened:
            overtaken += row["n"] < highest
            highest = max(highest, row["n"])
    return overtaken


async def alone(folder: Path, transport: str, **options: Any) -> Outage:
    """Run on servers of this program."""
    postgres = await asyncio.to_thread(choose.private_postgres, {**FAST, "max_connections": "200"})
    rabbitmq = await asyncio.to_thread(choose.private_rabbitmq) if transport == "rabbitmq" else None
    try:
        database, broker = postgres.dsn("postgres"), None
        if rabbitmq is not None:
            rabbitmq.add_vhost("outage")
            broker = rabbitmq.url("outage")
        await migrate.upgrade(Settings(database_url=SecretStr(database)))
        async with Installation(database, broker) as house:
            return await run(house, database, broker, folder, **options)
    finally:
        postgres.close()
        if rabbitmq is not None:
            rabbitmq.close()


def main() -> bool:
    """Return true if every promise was kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the service is down (60)")
    parser.add_argument("--rate", type=int, default=500, help="starts a second (500)")
    parser.add_argument(
        "--kill-every", type=float, default=4.0, help="seconds between two kills (4; 0: none)"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transport", choices=("postgres", "rabbitmq"), default="postgres")
    parser.add_argument(
        "--counts-running", action="store_true", help="use a breaker that counts running calls"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="penstock-outage-") as folder:
        outage = asyncio.run(alone(Path(folder), **vars(arguments)))
    print(outage)
    faults = outage.faults()
    print("\n".join(faults or ["Every promise was kept."]))
    return not faults


if __name__ == "__main__":
    sys.exit(not main())
