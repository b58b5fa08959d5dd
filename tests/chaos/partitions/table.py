"""What each partition did, as a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.partitions.watch import Parted


def line(parted: Parted) -> str:
    """Of one, as it is over."""
    return (
        f"{parted.name:32} {parted.how:8} {parted.healed - parted.began:6.1f} s   {parted.rate:6.1f} ends/s, none for "
        f"{parted.gap:5.1f} s; moved {_shown(parted.moved)}, ready {_shown(parted.ready)}, whole {_shown(parted.whole)}"
        + (f", {parted.restarted} nodes restarted" if parted.restarted else "")
    )


def lines(all_of: Sequence[Parted]) -> Iterator[str]:
    """A line for each who and whom: the worst of the times that it was parted."""
    found: defaultdict[str, list[Parted]] = defaultdict(list)
    for one in all_of:
        found[one.name].append(one)
    yield f"{'parted':28}{'times':>6}  {'how':22}{'seconds':>8}{'ends/s':>8}{'no end':>8}{'moved':>8}{'ready':>8}{'whole':>8}"
    for name, some in found.items():
        seconds = sum(one.healed - one.began for one in some)
        rate = sum(one.rate * (one.healed - one.began) for one in some) / seconds
        hows = ", ".join(one.how for one in some)
        marks = (_worst([getattr(one, mark) for one in some]) for mark in ("moved", "ready", "whole"))
        yield (
            f"{name:28}{len(some):>6}  {hows:22}{seconds:>8.1f}{rate:>8.1f}{max(one.gap for one in some):>8.1f}"
            + "".join(f"{_shown(mark):>8}" for mark in marks)
        )


def _worst(marks: Sequence[float | None]) -> float | None:
    known = [mark for mark in marks if mark is not None]
    return max(known) if len(known) == len(marks) else None


def _shown(seconds: float | None) -> str:
    return "never" if seconds is None else f"{seconds:.1f}"
