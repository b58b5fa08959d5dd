"""The flow in each combination of settings, on connections to PostgreSQL and behind PgBouncer."""

from __future__ import annotations

import pytest

from tests.servers.pgbouncer import PgBouncer
from tests.surroundings import play
from tests.surroundings.postgres_settings import COMBINED

pytestmark = pytest.mark.either_transport


@pytest.mark.parametrize("surrounding", COMBINED)
async def test_flow_runs_in_sessions_with_hostile_defaults(
    empty_database: str, broker: str | None, surrounding: str
) -> None:
    await play.through(empty_database, broker, COMBINED[surrounding])


@pytest.mark.parametrize("surrounding", COMBINED)
async def test_flow_runs_behind_a_pooler_with_hostile_defaults(
    empty_database: str, broker: str | None, surrounding: str, pgbouncer: PgBouncer
) -> None:
    await play.through(empty_database, broker, COMBINED[surrounding], pgbouncer)
