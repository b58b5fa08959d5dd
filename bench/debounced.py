"""Debounced events taken in by two executors: what they handle a second, and the statements and CPU that an event costs.

    python -m bench.debounced                           # 20,000 events of 1,000 keys: two minutes
    python -m bench.debounced --rate 1000 --seconds 60

First events are published at a fixed rate while the executors work, and the number of events behind is noted each second. Then a
backlog is published while no executor runs, and the time until two executors have matched all of it is taken.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time

from bench.replicas import Fleet, installation
from penstock import Client, Rule, Trigger, action

BESIDE = 250
"""The number of events that are published at once."""
UNMATCHED = "select count(*)::integer as behind from unmatched"
CLOSED = "select 1 where not exists (select from unmatched) and not exists (select from burst_key)"
STATEMENTS = """
select coalesce(sum(calls) filter (where query not ilike 'begin%' and query not ilike 'commit%'), 0)::integer as statements
from pg_stat_statements where toplevel and dbid = (select oid from pg_database where datname = current_database())
    and query not like '%pg_stat_statements%' and query not like '%as behind from unmatched%'
"""
PATIENCE_S = 600.0

edited = Trigger("docs.edited", schema={"key": "string", "n": "integer"})


@action(pack="docs")
async def index(key: str, n: int) -> None: ...


rule = Rule(
    "docs.on_edit",
    trigger=edited,
    action=index,
    params={"key": "{{ payload.key }}", "n": "{{ payload.n }}"},
    debounce="2s",
    by="payload.key",
)


async def publish(client: Client, count: int, keys: int) -> None:
    payloads = [{"key": str(random.randrange(keys)), "n": n} for n in range(count)]
    for start in range(0, count, BESIDE):
        await asyncio.gather(
            *(client.publish("docs.edited", payload) for payload in payloads[start : start + BESIDE])
        )


async def behind(client: Client) -> int:
    [row] = await client.session.fetch(UNMATCHED)
    return int(row["behind"])


async def paced(client: Client, rate: int, seconds: int, keys: int) -> None:
    """Publish at the rate, and print the largest number of events behind."""
    began, lags = time.monotonic(), []
    for second in range(seconds):
        await publish(client, rate, keys)
        await asyncio.sleep(max(0.0, began + second + 1 - time.monotonic()))
        lags.append(await behind(client))
    elapsed = time.monotonic() - began
    print(
        f"paced: {rate * seconds} events at {rate * seconds / elapsed:.0f}/s, most behind {max(lags)}, at the end {lags[-1]}",
        flush=True,
    )


async def backlog(client: Client, fleet: Fleet, count: int, keys: int) -> None:
    """Publish without executors, then let two of them match the events."""
    for name in fleet.of("executor"):
        await fleet.leave(name)
    await publish(client, count, keys)
    await client.session.fetch("select pg_stat_statements_reset()")
    for _ in range(2):
        fleet.start("executor")
    while (first := await behind(client)) == count:
        await asyncio.sleep(0.02)
    began = time.monotonic()
    async with asyncio.timeout(PATIENCE_S):
        while await behind(client):
            await asyncio.sleep(0.02)
    elapsed = time.monotonic() - began
    [row] = await client.session.fetch(STATEMENTS)
    print(
        f"backlog: {first} events matched in {elapsed:.1f} s by two executors: {first / elapsed:.0f}/s, "
        f"{row['statements'] / count:.3f} statements for each event",
        flush=True,
    )


async def measure(rate: int, seconds: int, count: int, keys: int) -> None:
    preloaded = {"shared_preload_libraries": "pg_stat_statements"}
    async with installation("bench/debounced.py", [edited, index, rule], 2, **preloaded) as (client, fleet):
        await fleet.all_there(client)
        await client.session.fetch("create extension pg_stat_statements")
        await paced(client, rate, seconds, keys)
        async with asyncio.timeout(PATIENCE_S):
            while not await client.session.fetch(CLOSED):
                await asyncio.sleep(0.1)
        await backlog(client, fleet, count, keys)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="debounced events, as executors take them in")
    parser.add_argument("--rate", type=int, default=1000, help="events a second while executors work (1000)")
    parser.add_argument("--seconds", type=int, default=20, help="seconds of that (20)")
    parser.add_argument("--count", type=int, default=20_000, help="events of the backlog (20000)")
    parser.add_argument("--keys", type=int, default=1000)
    arguments = parser.parse_args()
    asyncio.run(measure(**vars(arguments)))
