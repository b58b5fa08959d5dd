"""The results of a large fan-out, read by a workflow: over their bound they fail what reads them, and no executor holds them."""

from __future__ import annotations

import pytest

from penstock import action
from penstock.bounds import RESULTS_CAPS
from penstock.errors import ExecutionFailed
from penstock.language.workflows import from_yaml
from tests.flows.installation import Installation

CAP = 2_048
ITEMS = 2_000
RESULT = "x" * 1_022
"""As JSON, with its quotes, 1 KiB."""
BYTES = ITEMS * (len(RESULT) + 3) + 1
"""Of the list: of each result its quotes and a comma or bracket after it, and the bracket before the first."""


@action(pack="large")
async def page() -> str:
    return RESULT


@action(pack="large")
async def take(value: int) -> int:
    return value


reading = from_yaml(f"""
workflow: large.reading
tasks:
  pages: {{action: large.page, with_items: "{{{{ range({ITEMS}) }}}}"}}
  count: {{action: large.take, input: {{value: "{{{{ tasks.pages.result | length }}}}"}}, needs: [pages]}}
""")
beside = from_yaml("""
workflow: large.beside
tasks:
  pages: {action: large.page, with_items: "{{ range(100) }}"}
  count: {action: large.take, input: {value: "{{ tasks.pages.result | length }}"}, needs: [pages]}
output: "{{ tasks.count.result }}"
""")


async def test_oversized_results_fail_their_reader_and_others_advance(database: str, vhost: str) -> None:
    async with Installation(
        database, vhost, payload_cap=CAP, heartbeat_interval=10, stale_threshold=60
    ) as house:
        await house.start(page, take, reading, beside)
        id = await house.client.start("large.reading")
        with pytest.raises(ExecutionFailed) as failed:
            await house.client.result(id, timeout=120)
        assert f"the results of the items of task `pages` have {BYTES:,} bytes of JSON together" in str(
            failed.value
        )
        assert f"at most {RESULTS_CAPS * CAP:,} are read" in str(failed.value)
        assert await house.rows("select from execution where task = 'pages' and status <> 'completed'") == []
        assert await house.client.run("large.beside", timeout=60) == 100
        await house.quiet()
        await house.sound()
        assert await house.rows("select from dead_letter") == []
