"""Actions and workflows of the rows about tasks."""

from __future__ import annotations

import asyncio
import os
import time
from typing import Any

from penstock import Context, Limit, NonRetryable, action, current, task, workflow
from penstock.run.steering import defer_until

FLAKY = {"max_attempts": 3, "initial_delay": 1, "max_delay": 2.5, "jitter": 0}


@action(pack="tasks", retry={"max_attempts": 3, "initial_delay": 0.5, "jitter": 0})
async def flaky(fails: int) -> int:
    if current().attempt <= fails:
        raise ConnectionError(f"try {current().attempt} failed")
    return current().attempt


@workflow(pack="tasks")
def lifecycle() -> Any:
    first = flaky(fails=1)
    flaky(fails=0).after(first)
    flaky(fails=0).after(first).when("{{ false }}").set(name="never")
    return {"first": first}


@action(pack="tasks", route="narrow")
async def slot(n: int) -> float:
    await asyncio.sleep(0.4)
    return time.time()


@action(pack="tasks", executor="process", timeout="10s")
def misbehave(how: str) -> str:
    """Badly written in each way that there is."""
    if how == "crash":
        os._exit(3)
    if how == "hang":
        time.sleep(600)
    if how == "raise":
        raise RuntimeError("as told")
    if how == "exhaust":
        return str(len(bytearray(2_000_000_000)))
    return "well"


misbehaving_within = misbehave.with_options(
    ref="tasks.misbehave_within", options={"memory_limit": 200_000_000}
)


@action(pack="tasks", timeout="1s")
async def too_slow() -> None:
    await asyncio.sleep(600)


def policy(backoff: str) -> Any:
    async def fail(error: str = "ConnectionError") -> None:
        raise {"ConnectionError": ConnectionError, "ValueError": ValueError, "NonRetryable": NonRetryable}[
            error
        ]("as told")

    retry = {**FLAKY, "backoff": backoff, "retry_on": ["ConnectionError"]}
    return action(ref=f"tasks.retry_{backoff}", retry=retry)(fail)


fixed, linear, exponential = policy("fixed"), policy("linear"), policy("exponential")


@action(pack="tasks", limits=[Limit(1)])
async def patient(file: str) -> str:
    await defer_until(lambda: os.path.exists(file), every=1)
    return f"attempt {current().attempt}"


@action(pack="tasks")
async def told(
    n: int = 0, execution: str = "", status: str = "", result: Any = None, error: Any = None
) -> dict[str, Any]:
    return {"n": n, "execution": execution, "status": status}


@action(pack="tasks", on_success=told, on_failure=told, retry={"max_attempts": 2, "initial_delay": 0.2})
async def followed(fails: bool) -> str:
    if fails:
        raise ValueError("as told")
    return "well"


@task(pack="tasks", dependencies=[])
async def extract(context: Context) -> None:
    context["rows"] = context["day"] * 2
    context["who"] = "extract"


@task(pack="tasks", dependencies=[extract])
async def slow_branch(context: Context) -> None:
    await asyncio.sleep(0.6)
    context["who"] = "slow"
    context["slow"] = context["rows"] + 1


@task(pack="tasks", dependencies=[extract])
async def quick_branch(context: Context) -> None:
    context["who"] = "quick"
    context["quick"] = context["rows"] + 2


@task(
    pack="tasks",
    dependencies=[slow_branch, quick_branch],
    trigger_rule={"context": "who", "op": "==", "value": "quick"},
)
async def merge(context: Context) -> None:
    context["sum"] = context["slow"] + context["quick"] + context["day"]
    context["seen"] = context["who"]


shared_context = workflow("tasks.shared_context", tasks=[extract, slow_branch, quick_branch, merge])


@action(pack="tasks")
async def gate(file: str) -> str:
    while not os.path.exists(file):
        await asyncio.sleep(0.05)
    return "open"


@action(pack="tasks")
async def needs_file(file: str) -> str:
    if not os.path.exists(file):
        raise FileNotFoundError(file)
    return "found"


@workflow(pack="tasks")
def steered(file: str) -> Any:
    opened = gate(file=file).set(name="gate")
    middle = told(n=1).set(name="middle").after(opened)
    last = told(n=2).set(name="last").after(middle)
    return {"middle": middle, "last": last}


@workflow(pack="tasks")
def outer(file: str) -> Any:
    return {"inner": steered(file=file)}


@workflow(pack="tasks")
def mended(file: str) -> Any:
    first = told(n=1).set(name="first")
    return {"second": needs_file(file=file).set(name="second").after(first)}
