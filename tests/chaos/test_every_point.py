"""Every point of every scenario: a process is killed there, another one takes over, and the promises were kept."""

from __future__ import annotations

import pytest

from tests.crash.points.replay import Tally, Zygotes, replays
from tests.crash.points.scenarios import SCENARIOS
from tests.servers import databases
from tests.servers.postgres import Postgres
from tests.servers.rabbitmq import RabbitMQ

ON_BROKER = ("event", "cancel", "poison", "drain", "left behind")
"""Of these the points that a broker adds: publish, confirm, ack, dead letter, broadcast, relay."""
NO_CUT = ("Heartbeat._beat#4",)
"""Said on the way out: nobody is left to find out."""


OF_A_FUNCTION = ("@ coalesce", "attempts.py:claim", "attempts.py:finish", "timers.py:fire_due")
"""Where something of a durable function is committed: a step, a child, that it begins, goes on, sleeps and ends."""


@pytest.fixture(scope="module")
def tally() -> Tally:
    return Tally()


@pytest.mark.parametrize("name", SCENARIOS)
async def test_killed_at_each_of_its_points_it_is_done_all_the_same(
    zygotes: Zygotes, postgres_server: Postgres, template: str, tally: Tally, name: str
) -> None:
    broken = len(tally.broken)
    async with replays(zygotes, postgres_server, template, name, None, tally) as scenario:
        points = await scenario.record()
        await scenario.each([point for point in points if SCENARIOS[name].only in point], NO_CUT)
    assert tally.broken[broken:] == []


@pytest.mark.parametrize("name", ON_BROKER)
async def test_killed_at_each_of_its_points_on_a_broker_it_is_done_all_the_same(
    zygotes: Zygotes,
    postgres_server: Postgres,
    rabbitmq_server: RabbitMQ,
    template: str,
    tally: Tally,
    name: str,
) -> None:
    broken = len(tally.broken)
    vhost = databases.new_name()
    url = rabbitmq_server.add_vhost(vhost)
    try:
        async with replays(zygotes, postgres_server, template, name, url, tally) as scenario:
            points = [point for point in await scenario.record() if SCENARIOS[name].only in point]
            added = [point for point in points if "(commit)" not in point or "relay" in point]
            await scenario.each(added, uncut=("",))
    finally:
        rabbitmq_server.drop_vhost(vhost)
    assert tally.broken[broken:] == []


async def test_a_durable_function_killed_at_any_commit_keeps_records(
    zygotes: Zygotes, postgres_server: Postgres, template: str, tally: Tally
) -> None:
    """Each time that it comes there: a function of which some is recorded goes on from there."""
    broken = len(tally.broken)
    async with replays(zygotes, postgres_server, template, "durable", None, tally) as scenario:
        passed = await scenario.record()
        points = {point: n for point, n in passed.items() if any(words in point for words in OF_A_FUNCTION)}
        assert len(points) >= 2 * len(OF_A_FUNCTION)
        for point, count in points.items():
            for hit in range(1, count + 1):
                await scenario.kill(point, hit)
    assert tally.broken[broken:] == []


def test_every_call_site_was_a_point_and_a_process_ended_at_it(
    tally: Tally, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        print("\n" + tally.report())
    assert tally.missed() == []
    assert tally.not_ended() == []
