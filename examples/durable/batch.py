"""A batch of ten thousand items: each is an execution with limits and retries of its own, a few at a time."""

from __future__ import annotations

from penstock import DurableContext, Pack, RetryPolicy, action

pack = Pack("images")


def list_images(count: int) -> list[str]:
    return [f"image-{n}" for n in range(count)]


@action(retry=RetryPolicy(max_attempts=3))
async def shrink(name: str) -> int:
    """Returns the bytes that are left of it."""
    return len(name)


@action
async def shrink_all(ctx: DurableContext, count: int = 10_000) -> dict[str, int]:
    """Shrinks all images, a hundred at a time."""
    names = await ctx.step("list", list_images, count)
    sizes = await ctx.map(shrink, [{"name": name} for name in names], concurrency=100)
    return {"images": len(sizes), "bytes": sum(sizes)}
