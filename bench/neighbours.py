"""The effects of neighbours: a route whose workers differ, and many dead letters.

    python -m bench.neighbours             # a minute

An action that one of three workers has, and one that all three have: milliseconds from the start to the result in hand, one
after the other. 20,000 dead letters of ten reasons: seconds to count them by reason, and how many a second are put back,
by the commands that an operator types.
"""

from __future__ import annotations

import argparse
import asyncio
import time

from bench.figures import percentile
from bench.neighbour_of_all import of_all
from bench.replicas import Fleet, installation
from penstock import Client, Trigger, action
from penstock.store.outbox.dead_letters import TRIGGER, KeptLetter, keep

BATCH = 1000
PACE = 0.05
"""Seconds from one start to the next."""
RETURNED = Trigger("neighbours.returned")
"""No rule is for it: an event is stored, and that is all."""
EVENTS = (
    "select count(*)::integer as stored, count(distinct payload ->> 'n')::integer as different from event"
)


@action(pack="neighbours")
async def of_one(index: int) -> int:
    return index


async def latency(client: Client, name: str, samples: int) -> list[float]:
    """Milliseconds of each."""
    latencies = []
    for index in range(samples):
        began = time.perf_counter()
        assert await client.run(name, {"index": index}, timeout=30) == index
        latencies.append(1000 * (time.perf_counter() - began))
        await asyncio.sleep(max(0.0, PACE - latencies[-1] / 1000))
    return latencies


async def routes(client: Client, fleet: Fleet, samples: int) -> None:
    """One worker has both actions, two have one of them."""
    fleet.module = "bench/neighbour_of_all.py"
    for _ in range(2):
        fleet.start("worker")
    await fleet.all_there(client)
    for name in ("neighbours.of_all", "neighbours.of_one") * 2:  # the first turns make the plans
        latencies = await latency(client, name, samples)
        print(f"{name}: p50 {percentile(latencies, 0.5):.1f} ms, p99 {percentile(latencies, 0.99):.1f} ms")


async def letters(client: Client, fleet: Fleet, count: int) -> None:
    """By the commands that an operator types, with the start of each."""
    for first in range(0, count, BATCH):
        async with client.session.transaction() as tx:
            await keep(
                tx,
                sorted(
                    map(letter, range(first, first + BATCH)), key=lambda dead_letter: dead_letter.fingerprint
                ),
            )
    began = time.perf_counter()
    reasons = await fleet.command("dead-letters", "counts", "--json")
    print(f"{count:,} letters, {len(reasons)} reasons: counted in {time.perf_counter() - began:.2f} s")
    began = time.perf_counter()
    await fleet.command("dead-letters", "replay", "--all")
    rate = count / (time.perf_counter() - began)
    [events] = await client.session.fetch(EVENTS)
    print(f"put back, {rate:,.0f} a second; {events['stored']:,} events, {events['different']:,} different")


def letter(n: int) -> KeptLetter:
    reason = f"InvalidInput: no {'abcdefghij'[n % 10]} in what order {n} says"
    headers = f'{{"{TRIGGER}": "{RETURNED.ref}"}}'
    body = f'{{"n": {n}}}'.encode()
    return KeptLetter("event.received", reason, None, f"letter-{n}", body, headers, f"{n:08}")


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--letters", type=int, default=20_000, help="whole thousands")
    options = parser.parse_args()
    definitions = [of_one, of_all, RETURNED]
    async with installation("bench/neighbours.py", definitions, 1) as (client, fleet):
        await routes(client, fleet, options.samples)
        await letters(client, fleet, options.letters)


if __name__ == "__main__":
    asyncio.run(main())
