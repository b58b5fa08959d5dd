"""The commands that show schedules."""

from __future__ import annotations

import re

import pytest

from penstock import Schedule
from penstock.cli.schedule_views import missed_policy
from penstock.language.schedules.fire_plan import FirePolicy
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock

SPAN = ("--from", "2030-01-31T09:00", "--until", "2030-01-31T12:00")


async def test_missed_shows_which_fires_would_run_after_an_outage(house: Installation) -> None:
    each = Schedule(
        "shop.hourly",
        action=shop.charge,
        cron="30 * * * *",
        timezone="Europe/Berlin",
        params={"order": 1},
        missed={"catch_up": "all", "at_most": 2, "grace": 60},
    )
    await house.apply(*shop.ALL, each)
    fires = (await penstock("schedule", "missed", "shop.hourly", *SPAN, "--json")).documents
    assert [(fire["due"], fire["outcome"]) for fire in fires] == [
        ("2030-01-31T08:30:00+00:00", "skipped"),
        ("2030-01-31T09:30:00+00:00", "runs"),
        ("2030-01-31T10:30:00+00:00", "runs"),
    ]
    shown = " ".join((await penstock("schedule", "missed", "shop.hourly", *SPAN)).out.split())
    assert "2030-01-31 09:30:00+01:00 skipped" in shown
    assert "The latest 2 missed fires run after the outage." in shown
    described = " ".join((await penstock("schedule", "show", "shop.hourly")).out.split())
    assert "The latest 2 missed fires run" in described
    assert re.search(r"fired up to \d{4}-\d\d-\d\d [\d:.]+ UTC missed", described)
    wrong = await penstock("schedule", "missed", "shop.hourly", *SPAN[:3], "2030-01-31T08:00")
    assert (wrong.code, "--until is not after --from" in wrong.err) == (1, True)
    assert await house.rows("select from execution") == []


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (FirePolicy(), "The latest missed fire runs for all of them after the outage."),
        (FirePolicy(missed="skip", grace=5), "more than 5.0 s late is missed. It does not run."),
        (
            FirePolicy(missed="delay", delay=120, catch_up="all", at_most=3, spread=600),
            "The latest 3 missed fires run 2 min after the outage, spread over 10 min.",
        ),
    ],
)
def test_policy_for_missed_fires_is_a_sentence(policy: FirePolicy, words: str) -> None:
    assert missed_policy(policy).endswith(words)
