"""What services log names the process that logs it."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from penstock.ids import new_id
from tests.flows import shop
from tests.flows.installation import Installation


async def test_every_line_names_its_process_by_id_and_name(house: Installation) -> None:
    lines: list[dict[str, Any]] = []

    def keep(_: Any, __: str, line: Any) -> Any:
        lines.append(dict(line))
        raise structlog.DropEvent

    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, keep],
        wrapper_class=structlog.make_filtering_bound_logger(0),
    )
    try:
        await house.start(shop.wait_for)
        id = await house.client.start("shop.wait_for", {"seconds": 600})
        await house.until("select 1 from execution where status = 'running'")
        # Its worker is told by the thread of its heartbeats that another one has it.
        await house.rows("update execution set claim = $2 where id = $1 returning 1", id, new_id())
        processes = {str(row["id"]): row for row in await house.rows("select id, kind, name from process")}
        async with asyncio.timeout(20):
            while not any(line["event"] == "worker.claim_lost" for line in lines):
                await asyncio.sleep(0.05)
    finally:
        structlog.reset_defaults()
    assert {"executor.started", "worker.started"} <= {line["event"] for line in lines}
    for line in lines:
        logged_by = processes[line["replica_id"]]
        assert (line["service"], line["replica"]) == (logged_by["kind"], logged_by["name"]), line
