"""`penstock doctor --security` prints each check, and ends with 1 where one is bad."""

from __future__ import annotations

import pytest

from tests.penstock.cli.commands import penstock


async def test_command_ends_with_one_where_a_check_is_bad(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await penstock("doctor", "--security")).code == 0
    monkeypatch.setenv("PENSTOCK_API_HOST", "0.0.0.0")
    refused = await penstock("doctor", "--security", "--json")
    assert refused.code == 1
    assert {row["what"] for row in refused.documents if row["state"] == "bad"} == {"TLS of the API"}
