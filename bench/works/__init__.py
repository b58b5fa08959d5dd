"""The works: each does something with a running system and gives figures. WORKS has them by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.figures import Measured
from bench.session import Session
from bench.works import flows, idle, memory, paced, schedules, throughput
from bench.works.effort import Effort


@dataclass(frozen=True, slots=True)
class Work:
    run: Callable[[Session, Effort], Awaitable[Measured]]
    needs: str
    """The order that a system must know to take part."""
    once: bool = False
    """In the first round only, because a second time says nothing new."""


LOADS = (100, 200, 500, 1000, 2000, 4000)
"""Submits a second, beside the 20 of `latency-20`: the points of the curve."""

WORKS: dict[str, Work] = {
    "rss": Work(memory.rss, "send_many", once=True),  # before anything has grown
    "noop": Work(throughput.noop, "send_many"),
    "noop-100-callers": Work(throughput.callers, "callers"),
    "result-100-callers": Work(throughput.results, "results"),
    "limits-hot": Work(throughput.limits_hot, "limited"),
    "limits-spread": Work(throughput.limits_spread, "spread"),
    "latency-20": Work(paced.at_20, "send"),
    **{f"load-{rate}": Work(paced.at(rate), "send") for rate in LOADS},
    "latency-50pct": Work(paced.at_half, "callers"),
    "result-20": Work(paced.results_at_20, "result"),
    "workflow-latency": Work(paced.workflows_at_20, "chain"),
    "events": Work(throughput.events, "events"),
    "chain-100": Work(flows.chain, "chain"),
    "durable-100": Work(flows.durable, "durable"),
    "durable-1000x10": Work(flows.durables, "durables"),
    "fanout-100": Work(flows.fanout, "fanout"),
    "fanout-10000": Work(flows.wide, "wide"),
    "fanout-linear": Work(flows.linear, "wide"),
    "workflows-1000x10": Work(flows.workflows, "workflows"),
    "schedules-10000": Work(schedules.ten_thousand, "workflows", once=True),  # Penstock alone
    "idle": Work(idle.idle, "send_many", once=True),
}
