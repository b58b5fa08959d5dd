"""Reading what a service says on its port."""

from __future__ import annotations

import httpx

from penstock.service.http_addresses import trusted


async def get(port: int, path: str) -> tuple[int, str]:
    async with httpx.AsyncClient(verify=trusted()) as client:
        answer = await client.get(f"http://127.0.0.1:{port}{path}")
        return answer.status_code, answer.text


async def metrics(port: int) -> dict[str, float]:
    """By name and labels, as they are written."""
    text = (await get(port, "/metrics"))[1]
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in lines}
