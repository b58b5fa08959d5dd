"""T1, T3 to T5, T9 and T10: how tasks run, wait and recover."""

from __future__ import annotations

from uuid import UUID

from tests.parity.host import Host
from tests.parity.site import Site


async def t01_lifecycle(host: Host) -> str:
    """Lifecycle not started -> ready -> running -> completed / failed / skipped, retry back to ready."""
    site = await host.shared()
    id = await site.client.start("tasks.lifecycle")
    file = site.folder / "t01"
    steered = await site.client.start("tasks.steered", {"file": str(file)})
    document_before = (await site.command("show", steered, "--json")).one
    file.touch()
    await site.ends(id, steered)
    document = (await site.command("show", id, "--json")).one
    statuses = {task["name"]: task["status"] for task in document["tasks"]}
    assert statuses == {"flaky": "completed", "flaky_2": "completed", "never": "skipped"}, (
        f"tasks: {statuses}"
    )
    child = next(task["execution"] for task in document["tasks"] if task["name"] == "flaky")
    moves = await site.moves(UUID(child))
    cycle = [move for move in moves if move in ("requested", "running", "completed")]
    assert cycle == ["requested", "running", "requested", "running", "completed"], f"moves: {moves}"
    first = {task["name"]: task["status"] for task in document_before["tasks"]}
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
        return {await site.status(id) for id in ids} == {"completed"}

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
    statuses = dict(zip(ways, await site.ends(*ways.values()), strict=True))
    assert statuses == {
        "crash": "failed",
        "hang": "timeout",
        "raise": "failed",
        "exhaust": "failed",
        "well": "completed",
    }, f"{statuses}"
    assert await site.ends(slow) == ["timeout"]
    errors = {
        how: (await site.command("show", id, "--json")).one["error"]["type"]
        for how, id in ways.items()
        if how != "well"
    }
    again = await client.run("tasks.misbehave", {"how": "well"}, timeout=60)
    assert again == "well"
    return "ten neighbours completed beside " + ", ".join(
        f"{how} ({statuses[how]}, {error})" for how, error in errors.items()
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
        instant = at["flaky_2"][0].at
        assert done <= instant, (
            f"a task began {(done - instant).total_seconds():.2f} s before what it depends on had ended"
        )
        assert sum(move.new == "requested" for move in at["flaky"]) == 2, (
            "the first did not have to be tried again"
        )
    return "five runs: a task whose dependency is tried again begins after the second try has completed"


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
        execution = await site.client.get(id)
        assert execution.failures == 0, "a deferral counts as a failure"
    return (
        "another one had the only slot meanwhile; the wait outlived kill -9 of all services and ended at "
        f"attempt {execution.attempt}, no failure counted"
    )


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
        document = (await site.command("show", steady, "--json")).one
        lost_attempts = [attempt for attempt in document["attempts"] if attempt["outcome"] != "completed"]
        assert lost_attempts, "the attempt that was lost is not recorded"
        [executor] = [s for s in site.services if s.name == "executor-1"]
        assert executor.lines("reap_workers.process_lost"), "no line in the log"
    return (
        f"worker killed: {', '.join(sorted(reasons))}; attempt 1 recorded as {lost_attempts[0]['outcome']}; "
        "max_recoveries=0 is abandoned"
    )


# -- helpers: start work, and read its state ----------------------------------------


async def _deferred(site: Site, id: UUID) -> bool:
    found = await site.client.get(id)
    return found.status == "requested" and found.attempt > 0
