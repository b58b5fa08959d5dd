"""The polls that begin, and the announcements of awaited ends: each once as it should be, and once for every reason not to."""

from __future__ import annotations

from penstock.language.terms.ids import new_id
from tests.penstock.store.mending import limit, there
from tests.penstock.store.stand import Stand


async def test_a_poll_that_runs_is_not_called_beside_itself(stand: Stand) -> None:
    names = ("idle", "running", "not asked for")
    for name in names:
        stand.ids[name] = new_id()
        await stand.sql(
            "insert into poll (trigger, definition_id, namespace_id, every, running) values ($1, $2, $3, 60, $4)",
            *(name, stand.definition, stand.namespaces["action", "work.default"]),
            stand.ids[name] if name == "running" else None,
        )
    stand.ids["another call"] = new_id()
    begin = "select start_polls($1, $2) as messages"
    [row] = await stand.sql(begin, ["running"], [stand.ids["another call"]])
    assert row["messages"] == []
    [row] = await stand.sql(begin, ["idle", "running"], [stand.ids["idle"], stand.ids["another call"]])
    assert {one["queue"] for one in row["messages"]} == {"work.default"}, "it starts at once"
    rows = await stand.sql("select id from execution")
    assert stand.names([row[0] for row in rows]) == {"idle"}
    rows = await stand.sql("select trigger, running from poll where running is not null")
    assert {(row["trigger"], *stand.names([row["running"]])) for row in rows} == {(n, n) for n in names[:2]}


async def test_a_call_under_a_limit_has_its_slot_at_once(stand: Stand) -> None:
    key = await limit(stand)
    await stand.sql("update namespace set limits = array[$1::integer]", key)
    await stand.sql(
        "insert into poll (trigger, definition_id, namespace_id, every) values ('t', $1, $2, 60)",
        *(stand.definition, stand.namespaces["action", "work.default"]),
    )
    stand.ids["call"] = new_id()
    await stand.sql("select start_polls(array['t'], $1)", [stand.ids["call"]])
    assert await there(stand, "slot") == await stand.with_status("scheduled") == {"call"}


async def test_only_watchers_of_an_end_are_notified(stand: Stand) -> None:
    watcher = new_id()
    for name in ("one", "other"):
        stand.ids[name] = new_id()
        await stand.sql(
            "insert into awaited (execution_id, watcher) values ($1, $2)", stand.ids[name], watcher
        )
    [row] = await stand.sql("select tell_awaited($1) as messages", [stand.ids["one"]])
    assert [(one["queue"], stand.names(one["ids"])) for one in row["messages"]] == [
        (f"awaited.{watcher}", {"one"})
    ]
    [row] = await stand.sql("select tell_awaited($1) as messages", [new_id()])
    assert row["messages"] == []


async def test_a_look_for_awaited_ends_records_only_the_requested_ids(
    stand: Stand,
) -> None:
    mine, another = new_id(), new_id()
    for name, status in (("open", "running"), ("ended", "completed"), ("not asked for", "completed")):
        await stand.add(name, status)
    ids = stand.ids
    for watcher in (mine, another):
        await stand.sql(
            "insert into awaited (execution_id, watcher) values ($1, $2)", ids["not asked for"], watcher
        )
    look = "select id, status, result from look_for_awaited($1, $2, $3, $4)"
    asked = [ids["open"], ids["ended"]]
    for said, forgotten in ((asked, []), ([], []), ([ids["open"]], [ids["not asked for"], ids["ended"]])):
        rows = await stand.sql(look, mine, asked, said, forgotten)
        assert [(*stand.names([row["id"]]), row["status"]) for row in rows] == [("ended", "completed")]
        told = await stand.sql("select execution_id, watcher from awaited")
        of_another = [row["execution_id"] for row in told if row["watcher"] == another]
        assert stand.names(of_another) == {"not asked for"}
        of_mine = stand.names([row["execution_id"] for row in told if row["watcher"] == mine])
        assert of_mine == ({"open"} if forgotten else {"open", "ended", "not asked for"})
