"""The table of the effect of each partition."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.partitions.watch import Parted

COLUMNS = ("connections", "seconds", "ends/s", "no end", "moved", "ready", "whole")
TOLD = """
Worst of all times. connections: that were parted. seconds: for which, in all. ends/s, no end: of work that takes 50 ms, while
it lasted; seconds without any. After it was healed, seconds until: all had ended that was started before (moved), every
replica was ready, the nodes of RabbitMQ were one cluster and the standby in step (whole)."""


def line(one: Parted) -> str:
    """Return the line of a finished partition."""
    return (
        f"{one.name:24} {one.how:8}{one.healed - one.began:5.1f} s, {one.connections:3} connections, "
        f"{one.rate:6.1f} ends/s, none for {one.gap:4.1f} s; moved {_shown(one.moved)}, ready {_shown(one.ready)}, "
        f"whole {_shown(one.whole)}" + (f", {one.restarted} nodes restarted" if one.restarted else "")
    )


def lines(all_of: Sequence[Parted]) -> Iterator[str]:
    """Return a line for each pair of parted sides."""
    by_name: defaultdict[str, list[Parted]] = defaultdict(list)
    for partition in all_of:
        by_name[partition.name].append(partition)
    yield f"{'parted':24}{'times':>6}  {'how':28}" + "".join(f"{name:>12}" for name in COLUMNS)
    for name, some in by_name.items():
        yield f"{name:24}{len(some):>6}  {', '.join(partition.how for partition in some)[:26]:28}" + "".join(
            _figures(some)
        )
    yield TOLD
    if restarted := sum(partition.restarted for partition in all_of):
        yield f"Nodes of RabbitMQ that did not find back to the others, and were restarted: {restarted}."


def _figures(some: Sequence[Parted]) -> Iterator[str]:
    seconds = sum(partition.healed - partition.began for partition in some)
    yield f"{max(partition.connections for partition in some):>12}{seconds:>12.1f}"
    yield f"{sum(partition.rate * (partition.healed - partition.began) for partition in some) / seconds:>12.1f}"
    yield f"{max(partition.gap for partition in some):>12.1f}"
    for marks in (
        [partition.moved for partition in some],
        [partition.ready for partition in some],
        [partition.whole for partition in some],
    ):
        yield f"{_shown(None if None in marks else max(mark or 0.0 for mark in marks)):>12}"


def _shown(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f}"
