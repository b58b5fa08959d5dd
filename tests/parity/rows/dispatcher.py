"""D1 to D5: the worker that runs an action, and its route."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from functools import partial
from typing import Any

from tests.crash.processes import ROOT, python_path
from tests.parity.host import Host

CONFORMANCE = """
from examples.custom_executor import PacedExecutor
from penstock.testing.executor_conformance import LoggingExecutorConformance
from penstock.testing.scenarios import coroutine_action

class TestTemplate(LoggingExecutorConformance):
    def make(self, capacity):
        return PacedExecutor(capacity=capacity, per_second=1000)

    def action(self, scenario):
        return coroutine_action(scenario)
"""
TEMPLATE = """
from penstock import action

@action(pack="till", executor="till", route="till")
async def sell(n: int) -> int:
    return n
"""
GLOBS = (
    ("public::embedded::exact::only", "exact"),
    ("*::ml::*", "gpu"),
    ("**::batch::*", "k8s"),
    ("heavy_*", "high_memory"),
    ("*_gpu", "suffix"),
    ("tenant::**", "tenant"),
    ("**::both_*_ends", "middle"),
    ("**::" + "*a" * 20 + "b", "never"),
)
TAKES = {
    "public::embedded::exact::only": "exact",
    "public::ml::train": "gpu",
    "tenant::ml::inference": "gpu",
    "public::ml::deep::train": "default",
    "public::etl::batch::daily": "k8s",
    "public::batch::daily": "k8s",
    "public::etl::flow::heavy_load": "high_memory",
    "public::etl::train_gpu": "suffix",
    "tenant::etl::flow::load": "tenant",
    "public::x::both_a_ends": "middle",
    "public::x::both_ends_not": "default",
    "public::mlx::train": "default",
    "public::x::" + "a" * 50: "default",
}
"""Namespaces, and the route that the first glob that fits gives them."""


async def d01_ready_events(host: Host) -> str:
    """`TaskReadyEvent` without context data; dispatcher, router, registered executors by key."""
    site = await host.shared()
    id = await site.client.start("dispatch.inside")
    run = (await site.client.result(id, timeout=60))["told"]
    event = run["event"]
    assert run["executor"] == "probe"
    expected = {"execution_id", "attempt", "max_attempts", "namespace", "action", "workflow", "root", "task"}
    assert set(event) == expected, f"the event has {sorted(event)}"
    assert "hush" not in json.dumps(event), "the event carries the run's data"
    assert (event["namespace"], event["task"]) == ("public::dispatch::inside::told", "told"), (
        f"event: {event}"
    )
    assert (event["workflow"], event["root"]) == (str(id), str(id)), f"event: {event}"
    worker = site.worker("worker-mailed", "--routes", "mailed", "--concurrency", "1")
    await worker.ready()
    await _gone(worker)
    await site.client.start("dispatch.mailed", {"secret": "hush"})
    await site.until(partial(site.amqp.waits, "work.mailed"), "its envelope")
    [envelope] = [document for _, document in await site.amqp.take("penstock.work.mailed")]
    assert set(envelope) == {"v", "type", "ids"}, f"an envelope carries {sorted(envelope)}"
    return (
        f"a registered executor was given {', '.join(sorted(event))}, and no parameters; the envelope on the "
        f"route has {sorted(envelope)}"
    )


async def d02_executors_of_ones_own(host: Host) -> str:
    """Custom task executors through a public interface; a template and a conformance test; what is shipped."""
    site = await host.shared()
    file = site.folder / "test_template.py"
    file.write_text(CONFORMANCE)
    environment = {**os.environ, "PYTHONPATH": python_path()}
    words = (
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(site.folder),
        str(file),
    )
    tests = await asyncio.create_subprocess_exec(
        sys.executable,
        *words,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    module = site.folder / "till.py"
    await site.apply(
        TEMPLATE, "till.py", executors='{"till": {"class": "examples.custom_executor:PacedExecutor"}}'
    )
    till = {"class": "examples.custom_executor:PacedExecutor", "capacity": 2, "per_second": 5}
    worker = site.worker(
        "worker-till", "--routes", "till", module=str(module), executors=json.dumps({"till": till})
    )
    ids = await site.client.start_many("till.sell", [{"n": n} for n in range(6)])
    assert [await site.client.result(id, timeout=60) for id in ids] == list(range(6))
    times = sorted([next(m.at for m in await site.client.history(id) if m.new == "completed") for id in ids])
    assert (times[-1] - times[0]).total_seconds() > 0.7, "the template's pace was not kept"
    out = (await tests.communicate())[0].decode()
    assert tests.returncode == 0, f"the template breaks a promise of executors: {out[-400:]}"
    ran = await asyncio.gather(
        *(
            site.client.run(ref, params, timeout=60)
            for ref, params in (("flow.echo", {"n": 1}), ("tasks.misbehave", {"how": "well"}))
        )
    )
    assert ran == [1, "well"]
    passed = next(line for line in out.splitlines()[::-1] if "passed" in line)
    worker.close()
    return (
        f"the template keeps every promise ({passed.strip()}), and runs by settings, two at a time, five a "
        "second; async and process beside it (http, kubernetes: tests/penstock_worker/executors)"
    )


async def d03_routes(host: Host) -> str:
    """Routing kept in the database; globs: exact, `*`, `**`, prefix, suffix, first match wins, default; unknown route refused."""
    async with host.site(executors=0, workers=0) as site:
        rules = "\n".join(f'Route("{pattern}", "{route}")' for pattern, route in GLOBS)
        await site.apply(f"from penstock import Route\n{rules}\n", "globs.py")
        listed = await site.command("routes", "list", "--json")
        rows = {(line["pattern"], line["route"]) for line in listed.lines if line["kind"] == "rule"}
        assert set(GLOBS) <= rows, f"the database keeps {rows}"
        for pack, text in _packs().items():
            site.folder.joinpath(pack).mkdir()
            site.folder.joinpath(pack, "pack.yaml").write_text(text)
        await site.command("apply", *(site.folder / pack for pack in _packs()))
        explained = await asyncio.gather(
            *(site.command("routes", "explain", namespace, "--json") for namespace in TAKES)
        )
        routes_found = {
            namespace: answer.one["route"] for namespace, answer in zip(TAKES, explained, strict=True)
        }
        wrong = {
            namespace: (routes_found[namespace], route)
            for namespace, route in TAKES.items()
            if routes_found[namespace] != route
        }
        assert not wrong, f"(took, wanted): {wrong}"
        output = (
            'from penstock import action\n@action(pack="d03", route="gppu")\nasync def train() -> None: ...\n'
        )
        refused = await site.apply(output, "unknown.py", code=None, known_routes="default,gpu")
        assert refused.code != 0, "a route that is not among the known ones was taken"
    warned = await (await host.shared()).apply(output, "meant.py")
    assert "no live worker serves the route gppu" in warned.err, (
        f"apply does not say that nobody serves gppu: {warned.all}"
    )
    return (
        f"{len(GLOBS)} globs route {len(TAKES)} namespaces rightly; one of them with 20 stars; with "
        f"PENSTOCK_KNOWN_ROUTES: {refused.all.strip().splitlines()[0][-120:]}"
    )


async def d04_errors_of_dispatch(host: Host) -> str:
    """Errors: no executor, no capacity (stays ready), execution failed (retry or fail by policy); `why` shows them."""
    site = await host.shared()
    client = site.client
    bare = site.worker("worker-bare", "--routes", "bare", executors='{"process": null}')
    await bare.ready()
    lacking = await client.start("dispatch.by_process")
    ids = [await client.start("dispatch.alone", {"seconds": 120}) for _ in range(2)]
    for id in ids:
        await site.comes_to(id, "running")
    full = await client.start("dispatch.alone", {"seconds": 0})
    capacity, none = await asyncio.gather(site.command("why", full), site.command("why", lacking))
    assert "single" in capacity.out, f"`why` does not name the executor that has no capacity: {capacity.out}"
    assert "bare" in none.out, f"`why` of what no executor runs: {none.out}"
    await client.cancel(ids[0])
    assert await site.ends(full) == ["completed"]
    await client.cancel(ids[1])
    assert (await client.get(full)).attempt == 1, "a lack of capacity cost an attempt"
    bare.close()
    has = site.worker("worker-has", "--routes", "bare")
    assert await site.ends(lacking) == ["completed"], (
        "work was not taken by the first worker that has its executor"
    )
    has.close()
    unknown = 'from penstock import action\n@action(pack="d04", executor="docker")\nasync def build() -> None: ...\n'
    failed, answer = await client.start("dispatch.fails"), await site.apply(unknown, "docker.py", code=None)
    assert await site.ends(failed) == ["failed"]
    assert answer.code != 0 or "docker" in answer.all, "an executor that nobody has is taken without a word"
    return (
        f"no capacity: {capacity.out.strip()[:130]}; no executor: {none.out.strip()[:130]}; failed by policy; "
        f"docker: {answer.all.strip().splitlines()[0][:110]}"
    )


async def d05_executor_metrics(host: Host) -> str:
    """Executor metrics: active, executed, failed, average duration, available capacity."""
    site = await host.shared()
    good = [await site.client.start("dispatch.told", {"secret": "x"}) for _ in range(4)]
    bad = await site.client.start("dispatch.fails")
    assert await site.ends(*good, bad) == ["completed"] * 4 + ["failed"]
    workers = [service for service in site.services if service.name in ("worker-1", "worker-2")]
    names = (
        "active",
        "available",
        "executed_total",
        "failed_total",
        "average_duration",
        "cancelled_total",
        "leaked",
    )
    sums: dict[str, float] = {}
    for name in names:
        by_worker = [await worker.metrics(f"penstock_executor_{name}") for worker in workers]
        assert all("probe" in metrics_of_worker for metrics_of_worker in by_worker), (
            f"no metric executor_{name} of the executor probe: {by_worker}"
        )
        sums[name] = sum(metrics_of_worker["probe"] for metrics_of_worker in by_worker)
    assert sums["executed_total"] >= 5, f"{sums}"
    assert sums["failed_total"] >= 1, f"{sums}"
    assert sums["available"] == 20, f"{sums}"
    output = await site.command("workers", "show", "worker-1", "--json")
    assert "probe" in output.out, f"`workers show` does not tell of it: {output.out[:300]}"
    return (
        "of an executor of one's own, on two workers: "
        f"{', '.join(f'{name} {value:g}' for name, value in sums.items())}; also in `workers show`"
    )


def _packs() -> dict[str, str]:
    """Packs in which there is whatever is asked about."""
    packs: dict[str, dict[str, dict[str, Any]]] = {}
    for namespace in TAKES:
        _, pack, *names = namespace.split("::")
        parts = packs.setdefault(pack, {"actions": {}, "workflows": {}})
        if len(names) == 1:
            parts["actions"][names[0]] = {"executor": "command", "options": {"command": ["true"]}}
        else:
            workflow = parts["workflows"].setdefault(names[0], {"tasks": {}})
            workflow["tasks"][names[1]] = {"action": "cron.tell"}
    return {pack: json.dumps({"name": pack, **parts}) for pack, parts in packs.items()}


# -- helpers: start work, and read its state ----------------------------------------


async def _gone(worker: Any) -> None:
    """Remove its workers: the queue stays, and no worker takes its messages."""
    await asyncio.to_thread(worker.close)
