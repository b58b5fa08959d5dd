"""The changes of a repair: each row is there once as it should be mended, and once for every reason not to."""

from __future__ import annotations

from datetime import timedelta

from penstock.language.terms.ids import new_id
from tests.penstock.store.mending import limit, mend, slot, there, waiter
from tests.penstock.store.stand import Stand


async def test_recovery_looks_at_exactly_the_open_executions(stand: Stand) -> None:
    await stand.add("forgotten", "running", live=False)
    await stand.add("known", "running")
    await stand.add("in line", "waiting", live=False)
    await waiter(stand, "in line")
    await stand.add("ended", "completed", live=False)
    await stand.add("not asked for", "running", live=False)
    await stand.add("in no line", "queued", live=False)
    await stand.add("not asked for, in no line", "queued", live=False)
    await stand.add("queued", "queued", live=False)
    await waiter(stand, "queued")
    lane = "insert into lane (id, namespace_id, keys, gate_kind, rank, turn, ready_at, execution_id)"
    await stand.sql(lane + " values ($1, 1, '{}', 'worker', 0, 0, now(), $1)", stand.ids["queued"])
    asked = {name for name in stand.ids if not name.startswith("not")}
    assert await mend(stand, "mend_forgotten", *asked) == {"in no line"}
    assert await there(stand, "live") == {"forgotten", "known", "in no line"}
    assert await there(stand, "waiter") == {"in line", "queued"}, "lines are mended of what is queued"


async def test_a_closed_or_queued_execution_is_not_live(stand: Stand) -> None:
    await stand.add("ended", "completed")
    await stand.add("in line", "queued")
    await stand.add("gone", "running")
    await stand.sql("delete from execution where id = $1", stand.ids["gone"])
    await stand.add("open", "running")
    await stand.add("not asked for", "completed")
    assert await mend(stand, "mend_live", *(set(stand.ids) - {"not asked for"})) == set()
    assert await there(stand, "live") == {"open", "not asked for"}


async def test_an_ended_execution_is_on_its_way_to_the_archive_once(stand: Stand) -> None:
    await stand.add("ended", "completed")
    await stand.add("ended too", "failed")
    await stand.add("on its way", "completed")
    await stand.add("open", "running")
    await stand.add("task", "completed", parent="open")
    await stand.add("not asked for", "completed")
    await stand.sql("delete from finished")
    await stand.sql("insert into finished (ids) values (array[$1::uuid])", stand.ids["on its way"])
    for _ in ("mended", "mended again"):
        await mend(stand, "mend_finished", *(set(stand.ids) - {"not asked for"}))
        assert await there(stand, "(select unnest(ids) as id from finished) f", "id") == {
            *("ended", "ended too", "on its way")
        }
        assert len(await stand.sql("select from finished")) == 2


async def test_an_ended_execution_without_an_outcome_gets_a_lost_one(stand: Stand) -> None:
    await stand.add("lost", "completed")
    await stand.add("open", "running")
    await stand.add("has one", "completed")
    await stand.add("not asked for", "completed")
    await stand.sql("insert into result (execution_id, result) values ($1, '1')", stand.ids["has one"])
    await mend(stand, "mend_outcomes", "lost", "open", "has one")
    rows = await stand.sql("select execution_id from result where error ->> 'type' = 'ResultLost'")
    assert stand.names([row[0] for row in rows]) == {"lost"}


async def inquiry(stand: Stand, name: str, status: str = "created") -> None:
    await stand.sql(
        "insert into inquiry (execution_id, status, prompt) values ($1, $2, '?')", stand.ids[name], status
    )


async def test_a_waiting_execution_without_an_inquiry_asks_again(stand: Stand) -> None:
    key = await limit(stand)
    for name in ("silent", "answered", "asks", "not asked for"):
        await stand.add(name, "waiting", keys=[(key, "")])
        await slot(stand, key, name)
    await inquiry(stand, "answered", "responded")
    await inquiry(stand, "asks")
    await stand.add("workflow", "waiting", kind="workflow")
    await stand.add("runs", "running")
    await inquiry(stand, "runs", "responded")
    assert await mend(stand, "mend_silent", *(set(stand.ids) - {"not asked for"})) == {"silent", "answered"}
    assert await stand.with_status("scheduled") == {"silent", "answered"}
    assert await there(stand, "inquiry") == {"asks", "runs"}
    assert await there(stand, "slot") == {"asks", "not asked for"}


async def test_steps_of_missing_runs_are_deleted(stand: Stand) -> None:
    await stand.add("there", "running")
    stand.ids |= {"gone": new_id(), "not asked for": new_id()}
    for name in stand.ids:
        await stand.sql("insert into step values ($1, 's', 1, 1, 'step', 'completed', 1, 1)", stand.ids[name])
    await mend(stand, "mend_steps", "there", "gone")
    assert await there(stand, "step") == {"there", "not asked for"}


async def test_a_needless_sleeper_is_woken(stand: Stand) -> None:
    for name, status in (("asleep", "waiting"), ("has begun", "running"), ("not asked for", "waiting")):
        await stand.add(name, status)
    stand.ids["gone"] = new_id()
    for name in stand.ids:
        await stand.sql("insert into suspended (execution_id) values ($1)", stand.ids[name])
    assert await mend(stand, "mend_suspended", "asleep", "has begun", "gone") == {"asleep"}
    assert await there(stand, "suspended") == {"not asked for"}
    assert await stand.with_status("scheduled") == {"asleep"}


async def enforcement(stand: Stand, name: str, status: str = "executed") -> None:
    stand.ids.setdefault(name, new_id())
    await stand.sql(
        "insert into enforcement (event_id, rule, definition_id, execution_id, status, namespace_id, action_definition_id,"
        " params, options) values ($1, 'r', $2, $1, $3, $4, $2, '{}', '{\"expires\": 60}')",
        *(stand.ids[name], stand.definition, status, stand.namespaces["action", "work.default"]),
    )


async def test_an_enforcement_whose_execution_there_never_was_is_executed(stand: Stand) -> None:
    for name in ("made", "made long ago"):
        await stand.add(name, "requested")
    await stand.sql("delete from history where execution_id = $1", stand.ids["made long ago"])
    for name in (
        "made",
        "made long ago",
        "never made",
        "archived",
        "in the history",
        "not asked for",
        "only a name in an old history",
    ):
        await enforcement(stand, name)
    await enforcement(stand, "failed", "failed")
    await stand.sql(
        "insert into archive (id, finished_at, status, action, namespace, root, created_at, attempt, failures, recoveries,"
        " priority, definition_id) values ($1, now(), 'failed', 'a', 'b', $1, now(), 1, 0, 0, 0, 1)",
        stand.ids["archived"],
    )
    for name, ago in (("in the history", 0), ("only a name in an old history", 1)):
        await stand.sql(
            "insert into history (execution_id, at, new, attempt) values ($1, now() - $2::interval, 'requested', 0)",
            *(stand.ids[name], timedelta(hours=ago)),
        )
    await mend(stand, "mend_enforcements", *(set(stand.ids) - {"not asked for"}))
    made = {"never made", "only a name in an old history"}
    assert await there(stand, "execution", "id") == {"made", "made long ago", *made}
    assert await there(stand, "timer") == made, "nobody else has to begin in time from now on"
    rows = await stand.sql("select execution_id from enforcement where status = 'created'")
    assert rows == [], "what was not asked for stays as it is"
