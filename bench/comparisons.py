"""The comparisons on the page of figures, and the reasons where a peer is ahead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Comparison:
    """A drawing: one metric of one work, all systems beside each other."""

    name: str
    work: str
    low: str
    high: str
    """A second metric, shown beside the first; empty for none."""
    subject: str
    """What decides it: the reasons go by this."""
    title: str
    axis: str
    text: str
    more: bool = False
    """Whether more is better."""

    def better(self, value: float, other: float) -> bool:
        return value > other if self.more else value < other


COMPARISONS = (
    Comparison(
        "throughput", "noop", "throughput", "", "many", "No-ops, as many as it can",
        "executions a second; more is better",
        "Each system submits in its own way for many jobs, while its workers run.", more=True,
    ),
    Comparison(
        "cpu", "noop", "cpu_per_1000_total", "", "many", "What they cost",
        "CPU seconds of all processes per 1,000 executions; less is better",
        "These are the costs of the same run, including PostgreSQL and RabbitMQ.",
    ),
    Comparison(
        "callers", "noop-100-callers", "throughput", "", "callers", "100 callers at once",
        "executions a second; more is better",
        "Each caller submits an execution, waits until it is durable, and then submits the next.", more=True,
    ),
    Comparison(
        "start", "latency-20", "start_p50_ms", "start_p99_ms", "one", "One at a time: submit to begin",
        "milliseconds, p50 and p99; less is better", "20 a second on an otherwise idle machine.",
    ),
    Comparison(
        "result", "result-20", "result_p50_ms", "result_p99_ms", "result", "One at a time: submit to the result",
        "milliseconds, p50 and p99; less is better",
        "20 a second, until the client has the result. Systems without results are left out.",
    ),
    Comparison(
        "half", "latency-50pct", "start_p50_ms", "start_p99_ms", "one", "At half of saturation: submit to begin",
        "milliseconds, p50 and p99; less is better",
        "Each system runs at half of the rate that its own 100 callers reached, so the rates differ.",
    ),
    Comparison(
        "chain", "chain-100", "ms_per_step", "", "chain", "A step of a workflow",
        "milliseconds a step; less is better", "100 no-ops, each after the previous no-op.",
    ),
    Comparison(
        "workflow", "workflow-latency", "workflow_p50_ms", "workflow_p99_ms", "chain", "Workflows of ten steps",
        "milliseconds, p50 and p99; less is better", "20 workflows a second, from submit to the end of the tenth step.",
    ),
    Comparison(
        "cpu-20", "latency-20", "cpu_per_1000_total", "", "one", "What one at a time costs",
        "CPU seconds of all processes per 1,000 executions; less is better", "20 a second, submit to recorded end.",
    ),
    Comparison(
        "memory", "rss", "idle_mib_total", "saturated_mib_total", "memory", "Memory",
        "MiB of all processes but the client's, idle and saturated; less is better",
        "The memory includes PostgreSQL and RabbitMQ, if the system needs them. Shared pages count once.",
    ),
)  # fmt: skip

PLAIN_QUEUE = "A plain queue: no results, no history of states, no limits, no workflows."
MESSAGE = "A submit is only a message: before the work runs, PostgreSQL has no row of it."
LISTENS = "A submit is one insert. NOTIFY wakes a worker, which takes the job with one statement, without a decision in between."
FEWER = "It has fewer processes, or fewer libraries in each."

WHY = {
    ("many", "pgqueuer"): f"{PLAIN_QUEUE} One statement takes 100 jobs, and another statement ends them.",
    (
        "many",
        "graphile",
    ): f"{PLAIN_QUEUE} Its workers take 500 jobs at a time, and delete finished jobs together.",
    ("callers", "graphile"): PLAIN_QUEUE,
    ("callers", "pgqueuer"): PLAIN_QUEUE,
    ("one", "celery"): MESSAGE,
    ("one", "dramatiq"): f"{MESSAGE} It has no row afterwards either.",
    ("one", "taskiq"): MESSAGE,
    ("one", "procrastinate"): LISTENS,
    ("one", "pgqueuer"): LISTENS,
    ("one", "graphile"): LISTENS,
    ("one", "restate"): (
        "One process holds log, state and API, and pushes a call over an open connection to the service: one synced "
        "append, no database and no broker."
    ),
    ("one", "dbos"): "A submit is one insert, without a decision before a worker polls.",
    ("one", "temporal"): "Half of its saturation is only a few tens of executions a second.",
    ("result", "celery"): MESSAGE,
    ("result", "taskiq"): MESSAGE,
    ("result", "restate"): "The process that holds the log answers the client's own connection.",
    (
        "chain",
        "celery",
    ): "The rest of the chain travels in the message, and the worker that ends a step sends it on.",
    (
        "chain",
        "dramatiq",
    ): "The rest of the chain travels in the message, and is stored nowhere else.",
    (
        "chain",
        "taskiq",
    ): "The rest of the chain travels in the message, and the worker that ends a step sends it on.",
    (
        "chain",
        "procrastinate",
    ): "It has no workflows: the user's code in each task submits the next task.",
    ("chain", "dbos"): (
        "The steps run in one process, which commits each result and goes on. No other process could take the next step."
    ),
    ("chain", "restate"): (
        "The steps run in one handler. In the rows of calls, each step is a call of a second handler. The process appends "
        "each result to the log over an open connection."
    ),
    ("chain", "temporal"): "The server holds waiting work in memory, beside its database.",
    ("memory", "celery"): FEWER,
    ("memory", "dramatiq"): FEWER,
    ("memory", "taskiq"): FEWER,
    ("memory", "procrastinate"): f"It needs no broker. {FEWER}",
    ("memory", "pgqueuer"): f"It needs no broker. {FEWER}",
    ("memory", "graphile"): f"It needs no broker. {FEWER}",
    ("memory", "dbos"): f"It needs no broker. {FEWER}",
    ("memory", "temporal"): "It needs neither broker nor PostgreSQL: the development server is one process.",
    ("memory", "restate"): "It needs neither broker nor PostgreSQL.",
}
"""Why, by what decides it and the peer."""
