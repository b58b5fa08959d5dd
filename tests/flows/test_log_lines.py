"""The log lines of services name the process that logs them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from penstock.language.terms.ids import new_id
from penstock.service.log_line_schema import violations
from tests.crash.processes import Fleet
from tests.flows import shop
from tests.flows.installation import Installation

ALL_SAID = {"executor.started", "worker.started", "worker.claim_lost"}


async def test_every_line_names_its_process_by_id_and_name(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    log = tmp_path / "log"

    def lines() -> list[dict[str, Any]]:
        return [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]

    await house.apply(*shop.ALL)
    with Fleet(database, broker, log, log_level="info", log_format="json") as fleet:
        fleet.executor()
        fleet.worker()
        id = await house.client.start("shop.wait_for", {"seconds": 600})
        await house.until("select 1 from execution where status = 'running'", seconds=60)
        # Its worker is told by the thread of its heartbeats that another one has it.
        await house.rows("update execution set claim = $2 where id = $1 returning 1", id, new_id())
        async with asyncio.timeout(60):
            while not {line["event"] for line in lines()} >= ALL_SAID:
                await asyncio.sleep(0.05)
        processes = {str(row["id"]): row for row in await house.rows("select id, kind, name from process")}
    for line in lines():
        logged_by = processes[line["replica_id"]]
        assert (line["service"], line["replica"]) == (logged_by["kind"], logged_by["name"]), line
        assert list(violations(line)) == [], line
