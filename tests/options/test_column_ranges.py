"""The range of each whole number that a declaration or a start takes, beside the column that keeps it."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.language.terms.column_ranges import INTEGER, SMALLINT
from penstock_api.models.executions import Start
from tests.flows.installation import Installation
from tests.options.declared_options import Option, branches, by_suffix, options
from tests.options.declaring import in_python

COLUMNS: dict[str, tuple[str, ...]] = {
    "max": ("concurrency_limit.max",),
    "max_waiting": ("concurrency_limit.max_waiting",),
    "priority": ("execution.priority", "enforcement.priority", "archive.priority", "waiter.rank", "lane.rank"),
    "retry": ("execution.failures", "execution.attempt", "attempt.attempt", "archive.failures", "history.attempt"),
    "max_attempts": ("execution.failures", "execution.attempt", "attempt.attempt", "step.tries"),
    "max_depth": ("chain.max_depth", "chain.depth", "chain_step.depth"),
    "max_descendants": ("chain.max_descendants", "chain.descendants"),
    "max_recoveries": ("execution.recoveries", "archive.recoveries", "fire.recoveries"),
}  # fmt: skip
"""Columns that keep a number, or count up to it, by the option's last word."""
NO_COLUMN = (
    "cost",
    "factor",
    "backoff_factor",
    "jitter",
    "at_least",
    "at_most",
    "position",
    "concurrency",
    "batch_size",
    "join",
    "failures",
    "of",
    "within",
    "probe",
    "size",
)
"""Options that are read from the body of a definition alone."""
RANGES = {"smallint": SMALLINT, "integer": INTEGER, "bigint": 2**63 - 1}
IN_DATABASE = """
select table_name || '.' || column_name as name, data_type as type from information_schema.columns
where table_schema = current_schema
union all
select udt_name || '.' || attribute_name, data_type from information_schema.attributes where udt_schema = current_schema
"""


def whole_numbers() -> list[Option]:
    return [
        option
        for option in options()
        if any(branch.get("type") in ("integer", "number") for branch in branches(option.schema))
    ]


def accepts(option: Option, value: Any) -> bool:
    try:
        return bool(in_python(option, "numbered", option.entry(value)))
    except PenstockError:
        return False


@pytest.mark.parametrize("transport", ["postgres"], indirect=True)
async def test_a_number_takes_exactly_the_range_of_its_column(house: Installation) -> None:
    types = {row["name"]: row["type"] for row in await house.rows(IN_DATABASE)}
    for option in whole_numbers():
        if (columns := by_suffix((option.path[-1],), COLUMNS)) is None:
            assert option.path[-1] in NO_COLUMN, f"{option}: name its columns, or say that it has none"
            continue
        largest = min(RANGES[types[column]] for column in columns)
        assert (accepts(option, largest), accepts(option, largest + 1)) == (True, False), (
            f"{option}: {largest}"
        )
        if option.path[-1] == "priority":
            assert (accepts(option, -largest), accepts(option, -largest - 1)) == (True, False)
    smallest_and_largest = Start.model_json_schema()["properties"]["priority"]
    assert (smallest_and_largest["minimum"], smallest_and_largest["maximum"]) == (-SMALLINT, SMALLINT)
