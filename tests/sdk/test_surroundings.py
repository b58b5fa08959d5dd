"""The surroundings of a case: a killed worker of an earlier case gets nothing of the next one."""

from __future__ import annotations

import asyncio
import sys
import uuid
from pathlib import Path

from penstock.service.heartbeat import Identity
from penstock.store.processes import heartbeats
from penstock.testing.worker_conformance.faulty_proxy import FaultyProxy
from penstock.testing.worker_conformance.surroundings import Gateways, Surroundings, WorkerProcess
from tests.flows.installation import Installation


async def test_end_waits_until_the_worker_counts_as_gone(house: Installation, tmp_path: Path) -> None:
    proxy = FaultyProxy(())
    log = tmp_path / "log"
    surroundings = Surroundings(house.client, proxy, proxy, Gateways({}, log), (), "", {}, (), log)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "import time; time.sleep(600)", start_new_session=True
    )
    worker = WorkerProcess(process, "worker-1")
    surroundings.workers.append(worker)
    identity = Identity(uuid.uuid4(), "worker", "worker-1")
    await heartbeats.register(house.session, identity, None)
    ending = asyncio.create_task(surroundings.end_workers())
    await process.wait()
    await asyncio.sleep(0.5)
    assert not ending.done()
    await heartbeats.leave(house.session, identity.id)
    await ending
    assert surroundings.workers == []
    await proxy.close()
