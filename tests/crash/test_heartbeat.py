"""The cost of a heartbeat with much to carry; a blocked event loop does not stop it."""

from __future__ import annotations

import re
from itertools import dropwhile
from pathlib import Path

import pytest
from pydantic import SecretStr

from penstock.settings import Settings
from penstock.store.schema import migrate
from tests.crash.processes import Fleet
from tests.flows import shop
from tests.flows.installation import Installation
from tests.servers import choose
from tests.servers.postgres import FAST

LOGGED = {
    "logging_collector": "on",
    "log_directory": "log",
    "log_filename": "statements",
    "log_rotation_size": "0",
    "log_min_duration_statement": "0",
    "log_line_prefix": "%p %a|",
    "max_connections": "100",
}
LINE = re.compile(r"^(\d+) worker:\S+\|LOG:  duration: ([\d.]+) ms  (parse|bind|execute) \S+ (.*)")
HELD = 1000


async def test_a_worker_that_runs_a_thousand_beats_with_one_statement_an_interval(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = choose.private_postgres({**FAST, **LOGGED})
    try:
        url = server.dsn("postgres")
        await migrate.upgrade(Settings(database_url=SecretStr(url)))
        async with Installation(url, None, stale_threshold=10.0) as house:
            await house.start(*shop.ALL, concurrency=HELD, heartbeat_interval=0.5)
            ids = await house.client.start_many("shop.wait_for", [{"seconds": 3600}] * HELD)
            await house.until(
                "select 1 from execution where status = 'running' having count(*) = $1", HELD, seconds=60
            )
            [[began]] = await house.rows("select clock_timestamp()")
            await house.until(
                "select 1 from process where kind = 'worker' and cardinality(holding) = $1 "
                "and beat_at > $2::timestamptz + interval '3 seconds'",
                HELD,
                began,
            )
            [[text]] = await house.rows("select pg_read_file('log/statements')")
            await house.client.cancel(*ids)
    finally:
        server.close()

    statements = [match.groups() for line in text.splitlines() if (match := LINE.match(line))]
    [heart] = {process for process, _, _, statement in statements if "from beat(" in statement}
    executed = [
        statement for process, _, kind, statement in statements if process == heart and kind == "execute"
    ]
    # Before the first, it registered, and the driver asked what the types of the answer are.
    beats = list(dropwhile(lambda statement: "from beat(" not in statement, executed))
    assert len(beats) > 3
    assert len(set(beats)) == 1, "one statement an interval"
    times = [float(ms) for process, ms, kind, _ in statements if process == heart and kind == "execute"][-4:]
    with capsys.disabled():
        print(f"\na beat that carries {HELD}: {', '.join(f'{ms:.1f}' for ms in times)} ms of the database")


async def test_a_coroutine_that_blocks_the_loop_past_the_threshold_keeps_its_worker(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    await house.apply(*shop.ALL)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        fleet.executor()
        fleet.worker()
        id = await house.client.start("shop.block", {"seconds": 4.0})
        assert await house.client.result(id, timeout=40) == "blocked"
    [row] = await house.rows("select attempt, recoveries from execution where id = $1", id)
    assert tuple(row) == (1, 0)
    assert await house.rows("select from process where state = 'dead'") == []
    await house.sound()
