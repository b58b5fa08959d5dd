"""The lines that executions printed and logged."""

from __future__ import annotations

import time

from penstock.language.terms.ids import new_id
from penstock.store.executions import log_lines
from penstock.store.executions.log_lines import NewLine
from tests.flows.installation import Installation


async def test_stored_line_has_the_time_of_its_writing(house: Installation) -> None:
    id, now = new_id(), time.monotonic()
    lines = [NewLine(id, 1, 1, "stdout", "first", now - 5.0), NewLine(id, 1, 2, "stdout", "second")]
    await log_lines.store(house.session, lines, new_id(), "w")
    [row] = await house.rows(
        "select extract(epoch from max(at) - min(at))::float8 as apart from log_line where execution_id = $1",
        id,
    )
    assert 4.9 < row["apart"] < 6.0
