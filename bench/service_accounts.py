"""The cost of service accounts: starts with the owner's account for everything, and with the accounts of `penstock roles` for
the executor, the worker and the client, in pairs that take turns in which of the two comes first.

    python -m bench.service_accounts                             # eight pairs on RabbitMQ: ten minutes
    python -m bench.service_accounts --transport postgres --pairs 4

Prints a line a pair and the medians and quartiles of the ratios (accounts of services by owner). On a busy machine the times say
nothing: `others` is the share of it that other processes took.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from statistics import median, quantiles

from rich.console import Console

from bench.figures import Measured
from bench.servers import Servers, started
from bench.session import opened
from bench.systems import ACCOUNTS, System
from bench.works.paced import paced
from bench.works.throughput import run

WARM = 2_000
"""Executions before anything is measured, so that what is loaded with the first of them costs neither."""
FIGURES = (
    ("no-ops", "cpu_per_1000_total"),
    ("no-ops", "throughput"),
    ("100 callers", "cpu_per_1000_total"),
    ("100 callers", "throughput"),
    ("20/s", "cpu_per_1000_total"),
    ("20/s", "start_p50_ms"),
)

Half = dict[str, Measured]
"""The figures of one of a pair, by the work."""


async def half(servers: Servers, options: argparse.Namespace, accounts: bool) -> Half:
    os.environ.pop(ACCOUNTS, None)
    if accounts:
        os.environ[ACCOUNTS] = "1"
    async with opened(System("penstock", options.transport, peer=False), servers) as session:
        await run(session, "callers", WARM)
        return {
            "no-ops": (await run(session, "send_many", options.count))[1],
            "100 callers": (await run(session, "callers", options.count))[1],
            "20/s": await paced(session, "send", 20, options.samples),
        }


async def measure(servers: Servers, options: argparse.Namespace, console: Console) -> None:
    ratios: dict[tuple[str, str], list[float]] = {figure: [] for figure in FIGURES}
    for number in range(options.pairs):
        turns = [False, True] if number % 2 == 0 else [True, False]
        halves = {accounts: await half(servers, options, accounts) for accounts in turns}
        for (work, metric), found in ratios.items():
            owner, services = (halves[accounts][work][metric][0] for accounts in (False, True))
            found.append(services / owner)
            others = max(halves[accounts][work]["foreign_load"][0] for accounts in (False, True))
            console.print(
                f"pair {number + 1}, {work}, {metric}: owner {owner:.4g}, services {services:.4g}, "
                f"{services / owner:.2f}; others {others:.0%}"
            )
    for (work, metric), found in ratios.items():
        low, _, high = quantiles(found, n=4) if len(found) > 1 else (found[0],) * 3
        console.print(
            f"{work}, {metric}: {median(found):.3f} ({low:.2f} to {high:.2f}) of {len(found)} pairs"
        )


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument(
        "--count", type=int, default=20_000, help="executions of each throughput work in a half"
    )
    parser.add_argument("--samples", type=int, default=200, help="starts at 20 a second in a half")
    parser.add_argument("--transport", choices=("rabbitmq", "postgres"), default="rabbitmq")
    options = parser.parse_args()
    async with started(broker=options.transport == "rabbitmq") as servers:
        await measure(servers, options, Console())


if __name__ == "__main__":
    asyncio.run(main())
