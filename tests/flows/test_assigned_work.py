"""Work that is assigned to a worker with a permit, by whatever makes it ready: begun without a message, and once, whatever is
lost on the way."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Defer, Limit, RetryPolicy, Rule, Schedule, Trigger, action, current
from penstock.language.workflows import from_yaml
from penstock.store.processes import permits as stored_permits
from penstock.store.processes import processes
from penstock_worker.claiming import permits
from penstock_worker.claiming.assignments import Assignments
from tests.flows.installation import AS_USED, Installation

BEGUN: Counter[int] = Counter()
"""Runs of each execution, by its number."""
UNDER_WAY: set[int] = set()
CROWDS: list[int] = []
"""The number that ran at once, each time that one began."""
GATE = asyncio.Event()

PERMITS = "select from permit having count(*) >= $1"
MOVES = "select new, actor from history where execution_id = $1 order by at"


@action(pack="assigned")
async def count(n: int) -> int:
    BEGUN[n] += 1
    UNDER_WAY.add(n)
    CROWDS.append(len(UNDER_WAY))
    try:
        await asyncio.sleep(0)
        return n
    finally:
        UNDER_WAY.discard(n)


@action(pack="assigned")
async def wait(n: int) -> int:
    BEGUN[n] += 1
    await GATE.wait()
    return n


@action(pack="assigned", on_worker_loss="fail")
async def once(n: int) -> int:
    BEGUN[n] += 1
    return n


@action(pack="assigned", retry=RetryPolicy(max_attempts=2, initial_delay=0.05))
async def fail_first(n: int) -> int:
    if current().attempt == 1:
        raise ValueError("not yet")
    return n


@action(pack="assigned", retry=RetryPolicy(max_attempts=2, initial_delay=0))
async def fail_first_at_once(n: int) -> int:
    if current().attempt == 1:
        raise ValueError("not yet")
    return n


@action(pack="assigned")
async def defer_first(n: int) -> int:
    if current().attempt == 1:
        raise Defer(delay=0.05, state={"n": n})
    state = current().state or {}
    return int(state["n"])


@action(pack="assigned", limits=[Limit(1)])
async def one_at_a_time(n: int) -> int:
    BEGUN[n] += 1
    return n


ALL = (count, wait, once)
placed = Trigger("assigned.placed")
SOURCES = (
    *(count, fail_first, fail_first_at_once, defer_first, one_at_a_time),
    placed,
    Rule("assigned.on_placed", trigger=placed, action=count, params={"n": 5}),
    from_yaml("""
workflow: assigned.flow
tasks:
  each: {action: assigned.count, with_items: "{{ [7, 8] }}", input: {n: "{{ item }}"}}
"""),
)


@pytest.fixture(autouse=True)
def fresh() -> None:
    for record in (BEGUN, UNDER_WAY, CROWDS):
        record.clear()
    GATE.clear()


async def messages(house: Installation) -> int:
    return int(
        (await house.rows("select case when is_called then last_value else 0 end from outbox_id_seq"))[0][0]
    )


async def status(house: Installation, id: UUID) -> tuple[str, int]:
    [row] = await house.rows("select status, attempt from execution where id = $1", id)
    return row["status"], row["attempt"]


async def test_start_is_in_the_hands_of_an_idle_worker_at_once(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    await house.until(PERMITS, 1)
    before = await messages(house)
    assert await house.client.run("assigned.count", {"n": 1}, timeout=20) == 1
    assert await messages(house) == before
    [row] = await house.rows("select id from execution")
    moves = [tuple(move) for move in await house.rows(MOVES, row["id"])]
    assert [new for new, _ in moves] == ["requested", "scheduled", "running", "completed"]
    [submitter, _, *workers] = [actor for _, actor in moves]
    assert submitter.startswith("client:")
    assert workers[0] == workers[1] != submitter, "the worker begins and ends it"
    await house.sound()


async def test_lost_notification_is_looked_up(house: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the notifications are lost. Nothing is begun twice, and nothing waits for a heartbeat."""
    hear, lost = Assignments.heard, []

    def heard(self: Assignments, text: str) -> None:
        lost.append(text)
        if len(lost) % 2:
            hear(self, text)

    monkeypatch.setattr(Assignments, "heard", heard)
    await house.start(*ALL, heartbeat_interval=30.0, stale_threshold=90.0)
    for n in range(6):
        await house.until(PERMITS, 1)
        await house.client.run("assigned.count", {"n": n}, timeout=20)
    assert len(lost) > 1
    assert dict(BEGUN) == dict.fromkeys(range(6), 1)
    assert not await house.rows("select from attempt")


async def test_notification_that_comes_after_the_look_begins_nothing(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear, late = Assignments.heard, []

    def heard(self: Assignments, text: str) -> None:
        late.append((self, text))

    monkeypatch.setattr(Assignments, "heard", heard)
    await house.start(*ALL, **AS_USED)
    await house.until(PERMITS, 1)
    await house.client.run("assigned.count", {"n": 1}, timeout=20)
    assert late
    for assignments, text in late:
        hear(assignments, text)
    await asyncio.sleep(0.1)
    assert BEGUN == {1: 1}
    await house.sound()


async def test_worker_with_one_slot_never_runs_two(house: Installation) -> None:
    """Its permit and the messages of its route are for the same slot."""
    await house.start(*ALL, concurrency=1, **AS_USED)
    await house.until(PERMITS, 1)
    groups = [
        house.client.start_many("assigned.count", [{"n": 100 * g + n} for n in range(25)]) for g in range(4)
    ]
    singles = [house.client.start("assigned.count", {"n": 1000 + n}) for n in range(40)]
    await asyncio.gather(*groups, *singles)
    await house.quiet()
    assert set(BEGUN.values()) == {1}
    assert len(BEGUN) == 140
    assert max(CROWDS) == 1
    assert not await house.rows("select from attempt"), "nothing was handed back"


async def test_worker_without_a_free_slot_is_assigned_nothing(house: Installation) -> None:
    await house.start(*ALL, concurrency=2, **AS_USED)
    held = [await house.client.start("assigned.wait", {"n": n}) for n in range(2)]
    await house.until("select from execution where status = 'running' having count(*) = 2")
    waiting = await house.client.start("assigned.count", {"n": 9})
    assert await status(house, waiting) == ("scheduled", 0)
    assert not await house.rows("select from permit")
    GATE.set()
    for id in (*held, waiting):
        await house.client.result(id, timeout=20)


async def test_work_of_at_most_one_run_is_claimed_by_its_worker(house: Installation) -> None:
    await house.start(*ALL, **AS_USED)
    await house.until(PERMITS, 1)
    before = await messages(house)
    await house.client.run("assigned.once", {"n": 1}, timeout=20)
    assert await messages(house) == before + 1


async def test_worker_that_drains_finishes_its_assigned_work(house: Installation) -> None:
    await house.apply(*ALL)
    await house.executor(**AS_USED)
    stop = await house.worker(*ALL, grace=20.0, **AS_USED)
    await house.until(PERMITS, 1)
    id = await house.client.start("assigned.wait", {"n": 1})
    assert await status(house, id) == ("running", 1)
    ended = asyncio.create_task(house.ended(stop))
    await house.until("select where not exists (select from permit)")
    later = await house.client.start("assigned.count", {"n": 2})
    assert await status(house, later) == ("scheduled", 0)
    GATE.set()
    await ended
    assert await house.client.result(id, timeout=20) == 1
    assert BEGUN == {1: 1}
    assert not await house.rows("select from permit")


async def test_cordoned_worker_is_assigned_nothing(house: Installation) -> None:
    await house.start(*ALL)
    await house.until(PERMITS, 1)
    [name] = await processes.cordon(
        house.session,
        [row["name"] for row in await house.rows("select name from process where kind = 'worker'")],
    )
    before = await messages(house)
    id = await house.client.start("assigned.count", {"n": 1})
    assert await messages(house) > before, "it goes by its route, and a cordoned worker returns it there"
    await house.until("select where not exists (select from permit)")
    assert await processes.uncordon(house.session, [name]) == [name]
    await house.client.result(id, timeout=20)
    await house.until(PERMITS, 1)


async def test_worker_behind_a_pooler_has_no_permits(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewals: list[Any] = []
    monkeypatch.setattr(stored_permits, "renew", lambda *args, **more: renewals.append(args))
    await house.apply(*ALL)
    await house.executor(**AS_USED)
    await house.worker(*ALL, database_pooler=True, **AS_USED)
    await house.client.run("assigned.count", {"n": 1}, timeout=20)
    assert not renewals


async def test_permits_follow_the_rate(house: Installation) -> None:
    """One is out where nothing comes, and more while there is much."""
    await house.start(*ALL, **AS_USED)
    await house.until(PERMITS, 1)
    assert len(await house.rows("select from permit")) <= permits.FEWEST
    for n in range(60):
        await house.client.start("assigned.count", {"n": n})
    await house.until(PERMITS, 4)
    await house.quiet()
    assert set(BEGUN.values()) == {1}


async def test_worker_that_stood_still_asks_before_it_begins(
    house: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notification waited for so long that other workers may have the work: here it has ended."""
    hear, texts = Assignments.heard, []

    def heard(self: Assignments, text: str) -> None:
        texts.append((self, text))
        hear(self, text)

    monkeypatch.setattr(Assignments, "heard", heard)
    await house.start(*ALL, **AS_USED)
    await house.until(PERMITS, 1)
    await house.client.run("assigned.count", {"n": 1}, timeout=20)
    await house.quiet()
    [(assignments, text)] = texts
    async with assignments._turn:
        assignments._arrived.clear()
        assignments._asked_at -= 3600
        assignments._horizon = 0.0
        hear(assignments, text)
    await assignments.look(0.0)
    await asyncio.sleep(0.1)
    assert BEGUN == {1: 1}


async def _with_a_key(house: Installation) -> None:
    await house.client.run("assigned.count", {"n": 1}, key="a key", timeout=20)


async def _with_room_in_its_limit(house: Installation) -> None:
    await house.client.run("assigned.one_at_a_time", {"n": 1}, timeout=20)


async def _with_a_delay(house: Installation) -> None:
    id = await house.client.start("assigned.count", {"n": 1}, delay=0.05)
    assert await house.client.result(id, timeout=20) == 1


async def _tried_again(house: Installation) -> None:
    assert await house.client.run("assigned.fail_first", {"n": 1}, timeout=20) == 1


async def _tried_again_at_once(house: Installation) -> None:
    assert await house.client.run("assigned.fail_first_at_once", {"n": 1}, timeout=20) == 1


async def _deferred(house: Installation) -> None:
    assert await house.client.run("assigned.defer_first", {"n": 1}, timeout=20) == 1


async def _of_a_rule(house: Installation) -> None:
    await house.client.publish("assigned.placed", {})
    await house.until("select from execution where status = 'completed'")


async def _of_a_workflow(house: Installation) -> None:
    await house.client.run("assigned.flow", {}, timeout=20)


async def _of_a_schedule(house: Installation) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    await house.apply(count, Schedule("assigned.soon", action=count, at=soon.isoformat(), params={"n": 6}))
    await house.until("select from execution where status = 'completed'")


async def _promoted(house: Installation) -> None:
    runs = [house.client.run("assigned.one_at_a_time", {"n": n}, timeout=20) for n in range(3)]
    assert await asyncio.gather(*runs) == [0, 1, 2]


WAYS = (
    *(_with_a_key, _with_room_in_its_limit, _with_a_delay, _tried_again, _tried_again_at_once, _deferred),
    *(_of_a_rule, _of_a_workflow, _of_a_schedule),
)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__.strip("_").replace("_", "-"))
async def test_all_ready_work_is_assigned(
    house: Installation, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """Every attempt comes by a notification, and no message is on the route."""
    hear: Any = Assignments.heard
    arrived: Counter[str] = Counter()

    def heard(self: Assignments, text: str) -> None:
        arrived.update(f"{values[0]} {values[1]}" for values in orjson.loads(text)["claimed"])
        hear(self, text)

    monkeypatch.setattr(Assignments, "heard", heard)
    await house.start(*SOURCES, concurrency=16, **AS_USED)
    await house.until(PERMITS, 2)
    await way(house)
    await house.quiet()
    rows = await house.rows(
        "select h.execution_id, h.attempt from history h join execution e on e.id = h.execution_id"
        " join namespace n on n.id = e.namespace_id where h.new = 'running' and n.kind = 'action'"
    )
    assert rows
    assert set(arrived) == {f"{id} {attempt}" for id, attempt in rows}
    assert set(arrived.values()) == {1}
    await house.sound()


async def test_promotions_end_well_with_and_without_permits(house: Installation) -> None:
    """The first end assigns the next execution to a permit. Later ends claim the next one for the slots that they free."""
    await house.start(*SOURCES, concurrency=4, **AS_USED)
    await house.until(PERMITS, 1)
    runs = [house.client.run("assigned.one_at_a_time", {"n": n}, timeout=60) for n in range(30)]
    assert await asyncio.gather(*runs) == list(range(30))
    assert set(BEGUN.values()) == {1}
    await house.quiet()
    await house.sound()
