"""kill -9 at the points themselves. Here a few of them; `make chaos` ends a process at every one."""

from __future__ import annotations

import ast

import pytest

from tests.crash.points.replay import Tally, Zygotes, replays
from tests.crash.points.scenarios import SCENARIOS
from tests.crash.points.sites import ROOT, sites
from tests.servers.postgres import Postgres

AROUND = {
    "common/penstock/client/caller_transaction.py": "a transaction of the caller's own, which he commits",
    "common/penstock/store/session/connecting.py": "a setting of a new connection, which no other process sees",
    "common/penstock/store/schema/grants.py": "an operator's, not a service's",
    "common/penstock/store/session/connection_pool.py": "options of a connection, which are nobody's state",
    "common/penstock/store/session/database.py": "the primitive itself",
    "common/penstock/store/processes/heartbeats.py": "the lock of a new connection, taken before anything is done on it",
    "common/penstock/store/session/schema_watch.py": "looks whether the schema is complete; changes nothing",
    "common/penstock/store/session/unresponsive_server.py": "asks whether the server knows a connection; changes nothing",
    "common/penstock/store/schema/functions.py": "an operator's, not a service's",
    "common/penstock/store/schema/migrate.py": "an operator's, not a service's",
    "common/penstock/messaging/transports/rabbitmq/consumer.py": "the transport's own ack",
}
SHORT = {
    "event": 5,
    "admission": 2,
    "workflow": 3,
    "begun": 4,
    "inquiry": 2,
    "commands": 2,
    "upkeep": 2,
    "durable": 4,
    "assigned": 5,
    "bursts": 6,
    "windows": 6,
}
"""Of these so many points, spread over what they pass."""


def test_nothing_talks_to_a_server_around_the_points() -> None:
    around = set()
    for path in [*(ROOT / "common/penstock").rglob("*.py"), *(ROOT / "services").rglob("*.py")]:
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                on = ast.unparse(node.func.value)
                sql = (
                    node.func.attr in ("fetch", "execute", "executemany", "transaction")
                    and "connection" in on
                )
                settles = node.func.attr in ("basic_ack", "basic_nack", "basic_reject", "basic_publish")
                if (sql or settles) and not name.startswith("common/penstock/cli/"):
                    around.add(name)
    assert around == AROUND.keys()


def test_the_sites_are_those_that_the_source_has() -> None:
    names = {str(site) for site in sites()}
    for one in (
        "common/penstock/store/executions/attempts.py:claim#1 (commit)",
        "services/penstock_worker/ending/next_work.py:_at_once#1 (commit)",
        "common/penstock/store/workflows/steps.py:take_steps#1 (commit)",
        "common/penstock/store/workflows/steps.py:_take_plain#1 (commit)",
        "common/penstock/store/executions/attempts.py:finish#1 (commit)",
        "common/penstock/store/executions/attempts.py:finish_and_claim#1 (commit)",
        "services/penstock_worker/claiming/route_consumer.py:RouteConsumer._take#2 (ack)",
        "common/penstock/messaging/consumer.py:Consumer._transact#1 (commit)",
        "common/penstock/messaging/consumer.py:Consumer._handle#1 (ack)",
        "common/penstock/messaging/outbox.py:Publisher._publish#1 (publish)",
        "common/penstock/store/processes/heartbeats.py:beat#1 (commit)",
    ):
        assert one in names, sorted(names)


@pytest.mark.parametrize("name", SHORT)
async def test_killed_at_some_of_its_points_it_is_done_all_the_same(
    zygotes: Zygotes, postgres_server: Postgres, template: str, name: str
) -> None:
    tally = Tally()
    async with replays(zygotes, postgres_server, template, name, None, tally) as scenario:
        points = list(await scenario.record())
        some = [point for point in points if SCENARIOS[name].only in point]
        await scenario.each(some[1 :: max(1, len(some) // SHORT[name])], uncut=("",))
        decisive = next(
            point for point in points if "handle" in point or ":finish#1 (commit) committed" in point
        )
        if " committed " in decisive:
            await scenario.cut(decisive)
    assert not tally.broken, tally.report()
    assert tally.ended, tally.report()


async def test_the_order_of_the_points_is_that_of_the_promises(
    zygotes: Zygotes, postgres_server: Postgres, template: str
) -> None:
    async with replays(zygotes, postgres_server, template, "event", None, Tally()) as scenario:
        points = list(await scenario.record())

    def first(words: str) -> int:
        return next(n for n, point in enumerate(points) if words in point)

    assert first("attempts.py:claim#1 (commit) committed") < first("RouteConsumer._take#2 (ack) acking")
    assert first("Consumer._transact#1 (commit) committed @ consume event") < first("acking @ consume event")


def test_every_scenario_is_replayed_in_chaos() -> None:
    assert SCENARIOS.keys() > SHORT.keys()
