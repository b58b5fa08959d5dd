"""The cost of a weighted limit beside a plain one: CPU seconds of PostgreSQL, an executor and a worker for 1,000 executions.
Which of the two comes first alternates from pair to pair.

    python -m bench.weights                       # seven pairs of 1,000 executions each: three minutes
"""

from __future__ import annotations

import argparse
import asyncio
from statistics import median

from bench.meters import cpu_seconds
from bench.replicas import Fleet, installation
from penstock import Client, Limit, action

PATIENCE_S = 300.0
OPEN = "select 1 where not exists (select from execution where finished_at is null)"


@action(pack="weights", limits=[Limit(50)])
async def plain(index: int, tokens: int) -> None: ...


@action(pack="weights", limits=[Limit(50, cost="{{ parameters.tokens }}", unit="tokens")])
async def weighted(index: int, tokens: int) -> None: ...


async def half(client: Client, fleet: Fleet, ref: str, count: int) -> float:
    """Return the CPU seconds that 1,000 executions of an action cost."""
    groups = {
        "postgres": [fleet.servers["postgres"]],
        "services": [process.pid for process in fleet.alive.values()],
    }
    earlier = sum(cpu_seconds(groups).values())
    await client.start_many(ref, [{"index": index, "tokens": 1} for index in range(count)])
    async with asyncio.timeout(PATIENCE_S):
        while not await client.session.fetch(OPEN):
            await asyncio.sleep(0.1)
    return (sum(cpu_seconds(groups).values()) - earlier) * 1000 / count


async def measure(pairs: int, count: int) -> None:
    async with installation("bench/weights.py", [plain, weighted], 1) as (client, fleet):
        await fleet.all_there(client)
        refs = ("weights.plain", "weights.weighted")
        for ref in refs:  # plans and definitions are read the first time
            await half(client, fleet, ref, count)
        costs: dict[str, list[float]] = {ref: [] for ref in refs}
        for pair in range(pairs):
            for ref in refs if pair % 2 else reversed(refs):
                costs[ref].append(await half(client, fleet, ref, count))
            print(
                f"pair {pair + 1}: plain {costs[refs[0]][-1]:.2f} s, weighted {costs[refs[1]][-1]:.2f} s",
                flush=True,
            )
        ratios = [heavy / light for light, heavy in zip(*costs.values(), strict=True)]
        print(
            f"CPU seconds for 1,000 executions: plain {median(costs[refs[0]]):.2f}, weighted {median(costs[refs[1]]):.2f}; "
            f"median of the ratios {median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a weighted limit beside a plain one")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--count", type=int, default=1000, help="executions of each half of a pair (1000)")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.pairs, arguments.count))
