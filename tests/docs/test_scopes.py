"""The scopes of tokens are the same in the code, in the help and in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.operate import access
from tests.penstock.cli.commands import penstock

API = Path(__file__).parents[2] / "docs/api.md"


@pytest.mark.parametrize("scope", [*access.SCOPES, *access.NARROW, access.WORK])
async def test_every_scope_is_in_the_help_and_in_the_table(scope: str) -> None:
    assert f"| `{scope}` |" in API.read_text()
    assert scope in (await penstock("tokens", "create", "--help")).out
