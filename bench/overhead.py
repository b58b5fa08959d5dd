"""The cost of tracing: CPU seconds of all processes per 1,000 executions, with tracing off and with a share of them sampled, in
pairs that take turns in which of the two comes first.

    python -m bench.overhead                               # 1 % sampled, five pairs on RabbitMQ: ten minutes
    python -m bench.overhead --ratio 1 --pairs 3           # all of them sampled
    python -m bench.overhead --order events                # events that each match a rule

The collector is in this process, and no part of what is measured. The goal is less than 3 % at a ratio of 0.01. On a busy
machine the figures say nothing: `others` is the share of it that other processes took.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from rich.console import Console

from bench.servers import Servers, started
from bench.session import opened
from bench.systems import System
from bench.works.throughput import run
from tests.kit.otlp import Collector, collector

TRACED = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG")
WARM = 2_000
"""Executions before anything is measured, so that what is loaded with the first of them costs neither."""


@dataclass(frozen=True, slots=True)
class Half:
    """One of a pair: CPU seconds per 1,000, the share of the machine that others took, and spans received."""

    cpu: float
    others: float
    spans: int


@contextmanager
def environment(received: Collector, ratio: float | None) -> Iterator[None]:
    """Set the environment of the processes that are started in the block. Without a ratio they do not trace."""
    values = (received.url, "parentbased_traceidratio", str(ratio))
    for name in TRACED:
        os.environ.pop(name, None)
    if ratio is not None:
        os.environ.update(zip(TRACED, values, strict=True))
    try:
        yield
    finally:
        for name in TRACED:
            os.environ.pop(name, None)


async def half(servers: Servers, options: argparse.Namespace, ratio: float | None) -> Half:
    system = System("penstock", options.transport, peer=False)
    with collector() as received, environment(received, ratio):
        async with opened(system, servers) as session:
            await run(session, options.order, WARM)
            _, measured = await run(session, options.order, options.count)
        return Half(measured["cpu_per_1000_total"][0], measured["foreign_load"][0], len(received.spans))


async def measure(servers: Servers, options: argparse.Namespace, console: Console) -> None:
    overheads: list[float] = []
    for number in range(options.pairs):
        turns = [None, options.ratio] if number % 2 == 0 else [options.ratio, None]
        halves = {ratio: await half(servers, options, ratio) for ratio in turns}
        off, on = halves[None], halves[options.ratio]
        overheads.append(100 * (on.cpu / off.cpu - 1))
        console.print(
            f"pair {number + 1}: off {off.cpu:.4f} s, on {on.cpu:.4f} s, {overheads[-1]:+.1f} %; "
            f"{on.spans} spans; others {off.others:.0%} and {on.others:.0%}"
        )
    console.print(
        f"median {median(overheads):+.1f} % of {options.pairs} pairs, from {min(overheads):+.1f} to {max(overheads):+.1f}"
    )


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ratio", type=float, default=0.01, help="the share that is sampled")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--count", type=int, default=20_000, help="executions of each half")
    parser.add_argument("--order", choices=("callers", "send_many", "events"), default="callers")
    parser.add_argument("--transport", choices=("rabbitmq", "postgres"), default="rabbitmq")
    options = parser.parse_args()
    async with started(broker=options.transport == "rabbitmq") as servers:
        await measure(servers, options, Console())


if __name__ == "__main__":
    asyncio.run(main())
