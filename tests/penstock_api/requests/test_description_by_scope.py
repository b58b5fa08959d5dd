"""The API against its own description, as each scope: no error of the server, and no answer that is not described.

Schemathesis draws a request of each operation, and goes on with what answers name. `PENSTOCK_TEST_SCOPE_EXAMPLES=1` also covers
the bounds of each field, with some 3,400 requests and a minute for each scope. A higher number draws as many requests of each
operation.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest

from penstock.operate.access import NARROW, SCOPES
from tests.penstock_api.conftest import api_of_its_own
from tests.penstock_api.serving import serving
from tests.servers.postgres import Postgres

EXAMPLES = os.environ.get("PENSTOCK_TEST_SCOPE_EXAMPLES")
PHASES, LEAST_REQUESTS = (
    ("fuzzing,stateful", 100) if EXAMPLES is None else ("coverage,fuzzing,stateful", 2000)
)
"""The phases of Schemathesis, and the requests of a run at least: with fewer of them a phase has been left out."""
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
ENDLESS = "/api/v1/stream"
COUNT = re.compile(r"(\d+) generated, (\d+) passed")


@pytest.mark.parametrize("scope", [*SCOPES, *NARROW, "start:shop.count"])
async def test_scope_is_answered_as_described(
    postgres_server: Postgres, template: str, tmp_path: Path, scope: str
) -> None:
    async with api_of_its_own(postgres_server, template) as api:
        await api.token("caller", scope)
        run = await api.house.client.start("shop.in_steps", {"n": 1})
        await api.house.client.result(run, timeout=30)
        async with api.caller() as call:
            description = tmp_path / "openapi.json"  # Schemathesis itself waits only 10 s for it
            description.write_bytes((await call.get("/api/v1/openapi.json")).content)
        async with serving(api.app) as address:
            code, output = await schemathesis(address, api.secrets["caller"], tmp_path)
        await api.house.sound()
    assert code == 0, output
    counted = COUNT.search(output)
    assert counted is not None, output
    generated, passed = map(int, counted.groups())
    print(f"{scope}: {generated} requests, {passed} as described")
    assert generated == passed >= LEAST_REQUESTS, output


async def schemathesis(address: str, token: str, folder: Path) -> tuple[int, str]:
    """Run Schemathesis, and return its exit code and what it printed."""
    process = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), "run", "openapi.json", "--url", address),
        *(
            "--request-timeout",
            "120",
            "--phases",
            PHASES,
            "--checks",
            CHECKS,
            "--max-examples",
            EXAMPLES or "1",
            "--seed",
            "1",
        ),
        *("--header", f"Authorization: Bearer {token}", "--exclude-path", ENDLESS, "--no-shrink"),
        *("--generation-database", "none", "--no-color"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()
