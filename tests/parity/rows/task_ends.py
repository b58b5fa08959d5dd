"""T8, T11 and T12: how tasks fail, what is kept of them, and how they are steered."""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from tests.parity.host import Host
from tests.parity.site import Site


async def t08_retries(host: Host) -> str:
    """Retry: max attempts, initial delay, max delay, factor, jitter, fixed/linear/exponential, only on listed
    errors; delay stored."""
    site = await host.shared()
    client = site.client
    waits: dict[str, list[float]] = {}

    async def one(backoff: str) -> None:
        id = await client.start(f"tasks.retry_{backoff}")
        due = []
        for attempt in (1, 2):

            async def stored(attempt: int = attempt) -> Any:
                execution = await client.get(id)
                return (
                    execution.not_before
                    if execution.attempt == attempt and execution.status == "requested"
                    else None
                )

            due.append(await site.until(stored, "the instant of a retry to be stored"))
        await site.ends(id)
        moves = await client.history(id)
        failed = [move.at for move in moves if move.new == "requested"][1:]
        starts = [move.at for move in moves if move.new == "running"]
        assert len(starts) == 3, f"{backoff}: {len(starts)} attempts"
        assert all(start >= instant for start, instant in zip(starts[1:], due, strict=True)), (
            "a retry began before its time"
        )
        waits[backoff] = [
            round((instant - at).total_seconds(), 1) for at, instant in zip(failed, due, strict=True)
        ]

    unlisted, never = [
        await client.start("tasks.retry_fixed", {"error": name}) for name in ("ValueError", "NonRetryable")
    ]
    await asyncio.gather(*(one(backoff) for backoff in ("fixed", "linear", "exponential")))
    assert waits == {"fixed": [1.0, 1.0], "linear": [1.0, 2.0], "exponential": [1.0, 2.0]}, f"waits: {waits}"
    assert await site.ends(unlisted, never) == ["failed"] * 2
    tries = [(await client.get(id)).attempt for id in (unlisted, never)]
    assert tries == [1, 1], f"errors that are not listed, or not to be retried, were tried {tries} times"
    return f"seconds stored before each try: {waits}; an error that is not listed and NonRetryable are not tried again"


async def t11_every_attempt(host: Host) -> str:
    """Status, times, durations, errors, outputs of every attempt kept and queryable; callbacks on success and failure."""
    site = await host.shared()
    client = site.client
    good, bad = (
        await client.start("tasks.followed", {"fails": False}),
        await client.start("tasks.followed", {"fails": True}),
    )
    assert await site.ends(good, bad) == ["completed", "failed"]
    for id, status in ((good, "completed"), (bad, "failed")):
        followed = await site.until(
            partial(
                site.sql,
                "select e.id from execution e join payload p on p.execution_id = e.id where p.params ->> 'execution' = $1",
                str(id),
            ),
            f"the callback of {status}",
        )
        assert (await client.result(followed[0]["id"], timeout=30))["status"] == status
        assert len(followed) == 1
    document = (await site.command("show", bad, "--json")).one
    attempts = document["attempts"]
    assert [attempt["attempt"] for attempt in attempts] == [1, 2], (
        f"attempts of one that failed twice: {attempts}"
    )
    assert all(attempt["error"]["type"].endswith("ValueError") and attempt["worker"] for attempt in attempts)
    fine = (await site.command("show", good, "--json")).one["attempts"]
    assert [attempt["outcome"] for attempt in fine] == ["completed"], (
        f"the attempt that completed is not told: {fine}"
    )
    for attempt in (*attempts, *fine):
        times = {name: value for name, value in attempt.items() if _is_instant(value)}
        assert len(times) >= 2, f"an attempt without start and end: {attempt}"
    return (
        "two failed attempts and one that completed, each with worker, start, end and error "
        f"({attempts[0]['outcome']}); callbacks once on success and on failure"
    )


async def t12_steering(host: Host) -> str:
    """Pause, resume, cancel of workflows; propagated to children; re-run from failed; `skip` and override by an operator."""
    site = await host.shared()
    client = site.client
    files = {
        name: site.folder / f"t12-{name}" for name in ("paused", "cancelled", "skipped", "mended", "outer")
    }
    runs = {
        "paused": await client.start("tasks.outer", {"file": str(files["paused"])}),
        "cancelled": await client.start("tasks.outer", {"file": str(files["cancelled"])}),
        "skipped": await client.start("tasks.steered", {"file": str(files["skipped"])}),
        "mended": await client.start("tasks.mended", {"file": str(files["mended"])}),
    }
    tree = (
        "with recursive t as (select id, status from execution where id = $1 "
        "union all select e.id, e.status from execution e join t on e.parent = t.id) select status from t"
    )
    for name in ("paused", "cancelled", "skipped"):
        await site.until(
            partial(_all_running, site, tree, runs[name], 2 if name == "skipped" else 3),
            f"{name} to run",
        )
    await site.command("pause", runs["paused"], "--reason", "row")
    await site.until(
        lambda: site.sql("select 1 from paused_workflow where execution_id = $1", runs["paused"]), "the pause"
    )
    files["paused"].touch()
    await asyncio.gather(
        site.command("cancel", runs["cancelled"]),
        site.command("set-result", runs["skipped"], "last", '{"n": 99}'),
    )
    await site.command("skip", runs["skipped"], "gate")
    assert await site.ends(runs["cancelled"]) == ["cancelled"]
    statuses = {row["status"] for row in await site.sql(tree, runs["cancelled"])}
    assert statuses <= {"cancelled", "skipped"}, f"of a cancelled workflow there is something {statuses}"
    assert await site.status(runs["paused"]) == "running", "a paused workflow went on"
    count = await site.value(
        "select count(*) from execution where parent in (select id from execution where parent = $1)",
        runs["paused"],
    )
    assert count == 1, f"in a paused workflow {count} tasks have begun"
    why = await site.command("why", runs["paused"])
    await site.command("resume", runs["paused"])
    assert await site.ends(runs["paused"]) == ["completed"]
    assert "paused" in why.out, f"`why` of a paused one: {why.out}"
    await site.ends(runs["skipped"])
    tasks = {
        t["name"]: t["status"] for t in (await site.command("show", runs["skipped"], "--json")).one["tasks"]
    }
    assert (tasks["gate"], tasks["last"]) == ("skipped", "completed"), f"after skip and set-result: {tasks}"
    assert await site.ends(runs["mended"]) == ["failed"]
    files["mended"].touch()
    again = UUID((await site.command("rerun", runs["mended"], "--from-failed", "--json")).one["id"])
    assert await site.ends(again) == ["completed"]
    kept_tasks = {t["name"]: t["kept"] for t in (await site.command("show", again, "--json")).one["tasks"]}
    assert kept_tasks == {"first": True, "second": False}, f"re-run from failed kept {kept_tasks}"
    return (
        "paused with what is inside it, resumed; cancelled with all of its children; skip and set-result "
        f"obeyed ({tasks}); re-run from failed kept what had completed"
    )


# -- helpers: start work, and read its state ----------------------------------------


async def _all_running(site: Site, query: str, id: UUID, count: int) -> bool:
    statuses = [row["status"] for row in await site.sql(query, id)]
    return statuses.count("running") >= count


def _is_instant(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
