"""Polling with backoff: waits longer and longer for a job elsewhere, and holds no worker meanwhile."""

from __future__ import annotations

from penstock import DurableContext, NonRetryable, Pack, action

pack = Pack("render")


def submit(scene: str) -> str:
    return f"job-{scene}"


def look(job: str) -> str:
    return "done"  # or "running", "failed"


@action
async def render(ctx: DurableContext, scene: str) -> str:
    """Returns the job that has rendered the scene."""
    job = str(await ctx.step("submit", submit, scene))
    pause = 5.0
    while (status := await ctx.step("look", look, job, retry=3)) == "running":
        await ctx.sleep(pause)
        pause = min(pause * 2, 600)
    if status == "failed":
        raise NonRetryable(f"{job} failed")
    return job
