"""The flow in each surrounding of PostgreSQL alone, on connections and behind PgBouncer, on both transports. Beside it, the
policies of the broker that `make test` does not play."""

from __future__ import annotations

import asyncpg
import pytest

from tests.servers.pgbouncer import PgBouncer
from tests.servers.rabbitmq import RabbitMQ
from tests.surroundings import play, policy_flow
from tests.surroundings.broker_policies import COMBINED, POLICIES
from tests.surroundings.postgres_settings import alone

NAMES = sorted({name for major in (14, 18) for name in alone(major)})


async def _settings(database: str, surrounding: str) -> dict[str, str]:
    """Return the settings of this surrounding, as this server's version calls them."""
    connection = await asyncpg.connect(database)
    major = connection.get_server_version().major
    await connection.close()
    if surrounding not in alone(major):
        pytest.skip(f"PostgreSQL {major} has no such setting")
    return dict(alone(major)[surrounding])


@pytest.mark.parametrize("surrounding", NAMES)
async def test_flow_runs_in_sessions_of_each_surrounding(
    empty_database: str, broker: str | None, surrounding: str
) -> None:
    await play.through(empty_database, broker, await _settings(empty_database, surrounding))


@pytest.mark.parametrize("surrounding", NAMES)
async def test_flow_runs_behind_a_pooler_in_each_surrounding(
    empty_database: str, broker: str | None, surrounding: str, pgbouncer: PgBouncer
) -> None:
    await play.through(empty_database, broker, await _settings(empty_database, surrounding), pgbouncer)


@pytest.mark.parametrize("schema", ["Jobs", "a.b", "select", "mit-Strich"])
async def test_flow_runs_in_a_schema_of_any_name(
    empty_database: str, broker: str | None, schema: str
) -> None:
    await play.through(empty_database, broker, {}, schema=schema)


@pytest.mark.parametrize("name", sorted(set(POLICIES) - set(COMBINED)))
async def test_policy_of_the_broker_ends_no_work(
    database: str, vhost: str, rabbitmq_server: RabbitMQ, name: str
) -> None:
    await policy_flow.play(database, vhost, rabbitmq_server, name)
