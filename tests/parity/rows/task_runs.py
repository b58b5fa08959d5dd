"""T1, T3 to T5 and T8 to T12: how tasks run, fail, wait and are steered."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any
from uuid import UUID

from tests.parity.host import Host
from tests.parity.site import Site


async def t01_lifecycle(host: Host) -> str:
    """Lifecycle not started -> ready -> running -> completed / failed / skipped, retry back to ready."""
    site = await host.shared()
    id = await site.client.start("tasks.lifecycle")
    file = site.folder / "t01"
    begun = await site.client.start("tasks.steered", {"file": str(file)})
    before = (await site.command("show", begun, "--json")).one
    file.touch()
    await site.ends(id, begun)
    shown = (await site.command("show", id, "--json")).one
    found = {task["name"]: task["status"] for task in shown["tasks"]}
    assert found == {"flaky": "completed", "flaky_2": "completed", "never": "skipped"}, f"tasks: {found}"
    child = next(task["execution"] for task in shown["tasks"] if task["name"] == "flaky")
    moves = await site.moves(UUID(child))
    cycle = [move for move in moves if move in ("requested", "running", "completed")]
    assert cycle == ["requested", "running", "requested", "running", "completed"], f"moves: {moves}"
    first = {task["name"]: task["status"] for task in before["tasks"]}
    assert first["last"] == "not started", f"while the first runs: {first}"
    refused = await site.refused("update execution set status = 'running' where id = $1", UUID(child))
    return f"{' > '.join(moves)}; not started and skipped ones are shown; PostgreSQL refuses any other move ({refused})"


async def t03_concurrency(host: Host) -> str:
    """Concurrency limit per worker, permit held until done."""
    site = await host.shared()
    worker = site.worker("worker-narrow", "--routes", "narrow", "--concurrency", "3")
    await worker.ready()
    ids = await site.client.start_many("tasks.slot", [{"n": n} for n in range(12)])
    most = 0.0

    async def ended() -> bool:
        nonlocal most
        most = max(most, await worker.metric("penstock_running"))
        return set([await site.status(id) for id in ids]) == {"completed"}

    await site.until(ended, "twelve executions on three slots", 60)
    spans = []
    for id in ids:
        at = {move.new: move.at for move in await site.client.history(id)}
        spans.append((at["running"], at["completed"]))
    beside = max(sum(a <= start < b for a, b in spans) for start, _ in spans)
    assert most <= 3, f"the worker says that it runs {most:g}"
    assert beside == 3, f"{beside} of twelve ran at once on three slots"
    worker.close()
    return f"12 executions on a worker of 3: never more than {beside} at once, by the history and by /metrics"


async def t04_isolation(host: Host) -> str:
    """One task's panic, leak or hang does not touch others; per-task timeout really ends it; memory limit."""
    site = await host.shared()
    client = site.client
    ways = {
        how: await client.start(
            "tasks.misbehave_within" if how == "exhaust" else "tasks.misbehave", {"how": how}
        )
        for how in ("crash", "hang", "raise", "exhaust", "well")
    }
    slow = await client.start("tasks.too_slow")
    beside = await client.start_many("flow.nap", [{"seconds": 0.5, "n": n} for n in range(10)])
    assert set(await site.ends(*beside)) == {"completed"}, (
        "neighbours of tasks that misbehave did not complete"
    )
    found = dict(zip(ways, await site.ends(*ways.values()), strict=True))
    assert found == {
        "crash": "failed",
        "hang": "timeout",
        "raise": "failed",
        "exhaust": "failed",
        "well": "completed",
    }, f"{found}"
    assert await site.ends(slow) == ["timeout"]
    errors = {
        how: (await site.command("show", id, "--json")).one["error"]["type"]
        for how, id in ways.items()
        if how != "well"
    }
    again = await client.run("tasks.misbehave", {"how": "well"}, timeout=60)
    assert again == "well"
    return "ten neighbours completed beside " + ", ".join(
        f"{how} ({found[how]}, {error})" for how, error in errors.items()
    )


async def t05_dependencies(host: Host) -> str:
    """Only final states satisfy a dependency; a retrying task is not final; rechecked in the advancing transaction."""
    site = await host.shared()
    ids = [await site.client.start("tasks.lifecycle") for _ in range(5)]
    await site.ends(*ids)
    for id in ids:
        rows = await site.sql("select id, task from execution where parent = $1", id)
        at = {row["task"]: await site.client.history(row["id"]) for row in rows}
        done = next(move.at for move in at["flaky"] if move.new == "completed")
        asked = at["flaky_2"][0].at
        assert done <= asked, (
            f"a task began {(done - asked).total_seconds():.2f} s before what it depends on had ended"
        )
        assert sum(move.new == "requested" for move in at["flaky"]) == 2, (
            "the first did not have to be tried again"
        )
    return "five runs: a task whose dependency is tried again begins after the second try has completed"


async def t08_retries(host: Host) -> str:
    """Retry: max attempts, initial delay, max delay, factor, jitter, fixed/linear/exponential, only on listed errors; delay stored."""
    site = await host.shared()
    client = site.client
    waits: dict[str, list[float]] = {}

    async def one(backoff: str) -> None:
        id = await client.start(f"tasks.retry_{backoff}")
        due = []
        for attempt in (1, 2):

            async def stored(attempt: int = attempt) -> Any:
                found = await client.get(id)
                return found.not_before if found.attempt == attempt and found.status == "requested" else None

            due.append(await site.until(stored, "the instant of a retry to be stored"))
        await site.ends(id)
        moves = await client.history(id)
        failed = [move.at for move in moves if move.new == "requested"][1:]
        begun = [move.at for move in moves if move.new == "running"]
        assert len(begun) == 3, f"{backoff}: {len(begun)} attempts"
        assert all(start >= instant for start, instant in zip(begun[1:], due, strict=True)), (
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


async def t09_defer_until(host: Host) -> str:
    """defer_until gives the slot back while waiting; durable."""
    async with host.site() as site:
        file = site.folder / "t09"
        id = await site.client.start("tasks.patient", {"file": str(file)})
        await site.until(lambda: _deferred(site, id), "it to be deferred")
        held = await site.value("select count(*) from slot where execution_id = $1", id)
        assert held == 0, "what waits holds the slot of its limit"
        ready = site.folder / "ready"
        ready.touch()
        assert await site.client.run("tasks.patient", {"file": str(ready)}, timeout=30) == "attempt 1"
        for service in list(site.services):
            service.kill()
        file.touch()
        site.executor("executor-new")
        site.worker("worker-new")
        assert await site.ends(id) == ["completed"]
        found = await site.client.get(id)
        assert found.failures == 0, "a deferral counts as a failure"
    return f"another one had the only slot meanwhile; the wait outlived kill -9 of all services and ended at attempt {found.attempt}, no failure counted"


async def t10_recovery(host: Host) -> str:
    """Orphans detected, recovery events logged, attempts bounded."""
    async with host.site(executors=1, workers=1) as site:
        doomed, steady = (
            await site.client.start("scaling.fragile"),
            await site.client.start("flow.steady", {"seconds": 3}),
        )
        victim = await site.runs_on(doomed)
        await site.comes_to(steady, "running")
        victim.kill()
        site.worker("worker-new")
        assert await site.ends(doomed, steady) == ["abandoned", "completed"]
        reasons = {
            move.reason for id in (doomed, steady) for move in await site.client.history(id) if move.reason
        }
        assert any("lost" in reason for reason in reasons), (
            f"the history does not say that a worker was lost: {reasons}"
        )
        shown = (await site.command("show", steady, "--json")).one
        lost = [attempt for attempt in shown["attempts"] if attempt["outcome"] != "completed"]
        assert lost, "the attempt that was lost is not recorded"
        [executor] = [s for s in site.services if s.name == "executor-1"]
        assert executor.lines("reap_workers.process_lost"), "no line in the log"
    return f"worker killed: {', '.join(sorted(reasons))}; attempt 1 recorded as {lost[0]['outcome']}; max_recoveries=0 is abandoned"


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
            lambda id=id: site.sql(
                "select e.id from execution e join payload p on p.execution_id = e.id where p.params ->> 'execution' = $1",
                str(id),
            ),
            f"the callback of {status}",
        )
        assert (await client.result(followed[0]["id"], timeout=30))["status"] == status
        assert len(followed) == 1
    shown = (await site.command("show", bad, "--json")).one
    attempts = shown["attempts"]
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
    return f"two failed attempts and one that completed, each with worker, start, end and error ({attempts[0]['outcome']}); callbacks once on success and on failure"


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
    tree = "with recursive t as (select id, status from execution where id = $1 union all select e.id, e.status from execution e join t on e.parent = t.id) select status from t"
    for name in ("paused", "cancelled", "skipped"):
        await site.until(
            lambda name=name: _all_running(site, tree, runs[name], 2 if name == "skipped" else 3),
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
    left = {row["status"] for row in await site.sql(tree, runs["cancelled"])}
    assert left <= {"cancelled", "skipped"}, f"of a cancelled workflow there is something {left}"
    assert await site.status(runs["paused"]) == "running", "a paused workflow went on"
    begun = await site.value(
        "select count(*) from execution where parent in (select id from execution where parent = $1)",
        runs["paused"],
    )
    assert begun == 1, f"in a paused workflow {begun} tasks have begun"
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
    kept = {t["name"]: t["kept"] for t in (await site.command("show", again, "--json")).one["tasks"]}
    assert kept == {"first": True, "second": False}, f"re-run from failed kept {kept}"
    return f"paused with what is inside it, resumed; cancelled with all of its children; skip and set-result obeyed ({tasks}); re-run from failed kept what had completed"


# -- looking ---------------------------------------------------------------------------------------------------------


async def _deferred(site: Site, id: UUID) -> bool:
    found = await site.client.get(id)
    return found.status == "requested" and found.attempt > 0


async def _all_running(site: Site, query: str, id: UUID, count: int) -> bool:
    statuses = [row["status"] for row in await site.sql(query, id)]
    return statuses.count("running") >= count


def _is_instant(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True
