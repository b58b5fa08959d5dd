"""What comes after an attempt of which nobody knows how it would have ended: in the worker that stops, and in the database."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from penstock.language.after_attempt import NOT_BEGUN, ending_of_unfinished
from penstock.language.policies import Recovery
from penstock.settings import Settings
from penstock.store.database import Database


@pytest.mark.parametrize("on_worker_loss", ["rerun", "fail"])
async def test_a_worker_that_stops_decides_as_the_database_does_for_one_that_is_lost(
    database: str, on_worker_loss: str
) -> None:
    recovery = Recovery.model_validate({"on_worker_loss": on_worker_loss})
    home = Database(Settings(database_url=SecretStr(database)), role="test")
    [[status]] = await home.session().fetch(
        "select after_loss(null, 0, $1::text::jsonb)", recovery.model_dump_json()
    )
    await home.close()
    assert ending_of_unfinished(recovery).status == status


def test_what_came_to_nothing_keeps_its_place_in_line() -> None:
    assert NOT_BEGUN.delay is None
    assert ending_of_unfinished(Recovery()).delay is None
