"""`penstock polls`: see how poll triggers do, stop and start them."""

from __future__ import annotations

from typing import Any

from penstock import trigger
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@trigger(ref="post.letters", every=3600)
async def letters(state: dict[str, Any]) -> list[int]:
    state["seen"] = True
    return [1, 2]


async def test_poll_triggers_are_listed_shown_stopped_and_reset(house: Installation) -> None:
    assert "@trigger(every=...)" in (await penstock("polls", "list")).out
    await house.start(letters)
    await house.until("select 1 from poll where found = 2")
    [one] = (await penstock("polls", "list", "--json")).documents
    assert (one["trigger"], one["found"], one["error"]) == ("post.letters", 2, None)
    assert (await penstock("polls", "show", "post.letters", "--json")).document["state"] == {"seen": True}
    assert "seen" in (await penstock("polls", "show", "post.letters")).out
    assert "is reset" in (await penstock("polls", "reset", "post.letters")).out
    assert (await penstock("polls", "show", "post.letters", "--json")).document["state"] == {}
    assert "is disabled" in (await penstock("polls", "disable", "post.letters")).out
    await house.until("select 1 from poll where not enabled")
    assert (await penstock("polls", "enable", "post.letters", "--json")).document["is"] == "enabled"
    await house.until("select 1 from poll where found = 4")


async def test_a_missing_object_is_reported(house: Installation) -> None:
    for command in ("show", "enable", "disable", "reset"):
        said = await penstock("polls", command, "post.nothing")
        assert said.code == 1, command
        assert "polls list" in said.err, command
