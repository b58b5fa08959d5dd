"""The pages of a log are printed to the end, or as long as the execution runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from penstock.cli import logs
from penstock.language.terms.ids import new_id
from penstock.store.executions.log_lines import LogLine


async def pages_of_a_run(*, page_of_end: int) -> AsyncIterator[logs.Page]:
    id, worker = new_id(), new_id()
    for number in range(page_of_end + 1):
        line = LogLine(1, number, "stdout", f"line {number}", datetime.now(UTC), worker, "w")
        yield [("", id, line)] if number != 1 else [], number == page_of_end


@pytest.mark.parametrize(("follow", "count"), [(True, 2), (False, 1)])
async def test_log_is_followed_over_an_empty_page_to_its_end(follow: bool, count: int) -> None:
    assert await logs._print_pages(pages_of_a_run(page_of_end=2), follow, json=True) == count
