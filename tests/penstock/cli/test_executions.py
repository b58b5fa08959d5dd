"""`penstock executions`, `show`, `history`, `cancel` and `logs`."""

from __future__ import annotations

import re
from typing import Annotated, Any
from uuid import UUID, uuid4

from penstock import Secret, action, each, workflow
from penstock.store.executions import archive
from tests.flows import shop
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="cli")
def talk(words: list[str]) -> int:
    for word in words:
        print(word)
    return len(words)


@action(pack="cli")
async def sign(user: str, password: Annotated[str, Secret]) -> str:
    return user


@workflow(pack="cli")
def talk_much(groups: list[list[str]]) -> object:
    return talk(words=each(groups))


async def test_the_newest_come_first_and_can_be_paged_through(house: Installation) -> None:
    assert "No executions yet" in (await penstock("executions")).out
    await house.apply(*shop.ALL)
    ids = [str(await house.client.start("shop.charge", {"order": n})) for n in range(3)]
    assert [row["id"] for row in (await penstock("executions", "--json")).documents] == ids[::-1]
    page = await penstock("executions", "--limit", "2")
    assert ids[0] not in page.out
    assert f"--before {ids[1]}" in page.err
    assert ids[0] in (await penstock("executions", "--before", ids[1])).out


async def test_key_of_an_execution_is_shown_until_it_is_not_kept(house: Installation) -> None:
    await house.apply(*shop.ALL)
    keyed = await house.client.start("shop.charge", {"order": 1}, key="order-1")
    plain = await house.client.start("shop.charge", {"order": 2})
    burst: dict[str, Any] = {"debounce": "1h", "debounce_key": "day"}
    joined = [
        await house.client.start("shop.charge", {"order": 3}, key=key, **burst) for key in ("first", "second")
    ]
    assert joined[0] == joined[1]
    keys = [(await penstock("show", id, "--json")).document["key"] for id in (keyed, plain, joined[0])]
    assert keys == ["order-1", None, "first"]
    assert re.search(r"^key +order-1 *$", (await penstock("show", keyed)).out, re.MULTILINE)
    assert not re.search(r"^key ", (await penstock("show", plain)).out, re.MULTILINE)
    await house.rows("delete from idempotency returning 1")
    assert (await penstock("show", keyed, "--json")).document["key"] is None


async def test_they_can_be_chosen_by_status_and_action(house: Installation) -> None:
    await house.apply(*shop.ALL)
    await house.client.start("shop.charge", {"order": 1})
    assert "shop.charge" in (await penstock("executions", "--status", "scheduled")).out
    empty = (await penstock("executions", "--status", "failed")).out
    assert "There are none. Tasks of workflows are left out: --children includes them." in empty
    assert "left out" not in (await penstock("executions", "--status", "failed", "--children")).out
    assert "There are none." in (await penstock("executions", "--action", "shop.count")).out
    wrong = await penstock("executions", "--status", "done")
    assert wrong.code == 1
    assert "completed" in wrong.err


async def test_archived_ones_are_listed_chosen_and_paged_through_as_the_others_are(
    house: Installation,
) -> None:
    await house.start(*shop.ALL)
    ids = [str(await house.client.start("shop.charge", {"order": n})) for n in range(3)]
    ids.append(str(await house.client.start("shop.hopeless")))
    await house.quiet()
    await archive.archive_finished(house.session, 0, 100, 0)
    assert not await house.rows("select from execution")
    ids.append(str(await house.client.start("shop.charge", {"order": 4}, delay=60)))

    async def listed(*words: str) -> list[str]:
        return [row["id"] for row in (await penstock("executions", "--json", *words)).documents]

    assert await listed() == ids[::-1]
    assert await listed("--status", "failed") == [ids[3]]
    assert await listed("--status", "completed") == ids[2::-1]
    assert await listed("--status", "requested") == [ids[4]]
    assert await listed("--action", "shop.hopeless") == [ids[3]]
    assert await listed("--limit", "2") == [ids[4], ids[3]]
    assert await listed("--limit", "2", "--before", ids[3]) == [ids[2], ids[1]]


async def test_the_tasks_of_an_archived_workflow_are_listed_on_request(house: Installation) -> None:
    await house.start(talk, talk_much)
    id = str(await house.client.start("cli.talk_much", {"groups": [["a"], ["b"]]}))
    await house.quiet()
    await archive.archive_finished(house.session, 0, 100, 0)
    assert [row["id"] for row in (await penstock("executions", "--json")).documents] == [id]
    rows = (await penstock("executions", "--json", "--children")).documents
    assert {(row["task"], row["item"]) for row in rows} == {(None, None), ("talk", 0), ("talk", 1)}


async def test_priority_of_a_waiting_execution_is_changed(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = str(await house.client.start("shop.charge", {"order": 7}))
    answer = await penstock("set-priority", id, "9")
    assert (answer.code, answer.out.strip()) == (0, "The priority of 1 execution is 9 now.")
    answer = await penstock("set-priority", id, "9")
    assert answer.out.strip() == "Nothing to change: its priority is 9 already."
    assert (await penstock("set-priority", id, "--json", "--", "-5")).document["changed"] == 1
    [row] = await house.rows("select priority from execution")
    assert row["priority"] == -5
    notes = await house.rows(
        "select operation, target, details::jsonb ->> 'priority' as priority from audit order by at"
    )
    assert [tuple(note) for note in notes] == [("penstock set-priority", id, n) for n in ("9", "9", "-5")]
    assert (await penstock("set-priority", id, "40000")).code == 2


async def test_start_of_a_waiting_execution_is_changed(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = str(await house.client.start("shop.charge", {"order": 7}, delay=60))
    answer = await penstock("reschedule", id, "--at", "2100-01-31T09:00", "--reason", "later")
    assert (answer.code, answer.out.strip()) == (0, "It starts at 2100-01-31 09:00:00 UTC.")
    document = (await penstock("reschedule", id, "--in", "5m", "--json")).document
    [row] = await house.rows("select not_before, reason from execution")
    assert (document["at"], row["reason"]) == (
        row["not_before"].isoformat(),
        "it was rescheduled",
    )
    for words in ((), ("--in", "1h", "--at", "2100-01-01"), ("--in", "soon"), ("--at", "noon")):
        refused = await penstock("reschedule", id, *words)
        assert refused.code != 0, words
        assert refused.err
    notes = await house.rows("select operation, target from audit where outcome = 'done' order by at")
    assert [tuple(note) for note in notes] == [("penstock reschedule", id)] * 2
    await house.client.cancel(UUID(id))
    assert "has ended" in (await penstock("reschedule", id, "--in", "1h")).err


async def test_one_is_shown_with_its_result(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7, "amount": 3})
    await house.client.result(id, timeout=20)
    said = await penstock("show", id)
    assert said.code == 0
    for word in (str(id), "shop.charge", "completed", '"charged": 3'):
        assert word in said.out
    shown = (await penstock("show", id, "--json")).document
    assert shown["result"] == {"order": 7, "charged": 3}
    [tried] = shown["attempts"]
    [worker] = await house.rows("select name from process where kind = 'worker'")
    assert (tried["attempt"], tried["outcome"], tried["worker"]) == (1, "completed", worker["name"])
    assert shown["created_at"] < tried["started_at"] < tried["ended_at"]
    assert tried["duration"] > 0


async def test_one_that_failed_is_shown_with_its_attempts(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.flaky", {"failures": 9})
    await house.until("select 1 from execution where status = 'failed'")
    said = await penstock("show", id)
    assert said.out.count("ConnectionError") >= 1
    assert "attempt 1 failed" in said.out
    first = said.out.partition("outcome")[2].splitlines()[1]
    assert "ConnectionError: attempt 1 failed" in first
    attempts = (await penstock("show", id, "--json")).document["attempts"]
    assert [(one["attempt"], one["outcome"]) for one in attempts] == [(n, "failed") for n in (1, 2, 3)]


async def test_a_workflow_is_shown_with_its_tasks(house: Installation) -> None:
    await house.start(talk, talk_much)
    id = await house.client.start("cli.talk_much", {"groups": [["a"], ["b"], ["c"]]})
    assert await house.client.result(id, timeout=20) == [1, 1, 1]
    shown = (await penstock("show", id, "--json")).document
    [task] = shown["tasks"]
    assert (task["name"], task["status"], task["executions"]) == ("talk", "completed", {"completed": 3})
    assert shown["critical_path"] == ["talk"]
    assert len((await penstock("executions", "--children", "--json")).documents) == 4
    said = (await penstock("show", id)).out
    assert task["execution"] in said
    assert "3 items: 3 completed" in said


async def test_secrets_are_not_shown(house: Installation) -> None:
    await house.start(sign)
    id = await house.client.start("cli.sign", {"user": "ada", "password": "tell nobody"})
    await house.client.result(id, timeout=20)
    for words in (("show", id), ("show", id, "--json"), ("history", id), ("logs", id)):
        assert "tell nobody" not in (await penstock(*words)).out
    assert "ada" in (await penstock("show", id)).out


async def test_the_history_names_the_actor_of_each_move(house: Installation) -> None:
    await house.start(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    await house.client.result(id, timeout=20)
    rows = (await penstock("history", id, "--json")).documents
    assert [row["new"] for row in rows] == ["requested", "scheduled", "running", "completed"]
    assert [row["actor"].split(":")[0] for row in rows] == ["client", "client", "worker", "worker"]
    assert "completed" in (await penstock("history", id)).out


async def test_cancelling_says_how_many_were_told(house: Installation) -> None:
    await house.apply(*shop.ALL)
    id = await house.client.start("shop.charge", {"order": 7})
    assert (await penstock("cancel", id, "--reason", "changed my mind", "--json")).document["told"] == 1
    assert "changed my mind" in (await penstock("show", id)).out
    assert "Nothing to cancel" in (await penstock("cancel", id)).out


async def test_the_log_has_the_printed_lines(house: Installation) -> None:
    await house.start(talk)
    id = await house.client.start("cli.talk", {"words": ["one", "[two]"]})
    await house.client.result(id, timeout=20)  # its last lines may be written a moment later
    assert (await penstock("logs", id, "--follow")).out.split() == ["one", "[two]"]
    lines = (await penstock("logs", id, "--json")).documents
    assert [row["line"] for row in lines] == ["one", "[two]"]
    [worker] = await house.rows("select id::text, name from process where kind = 'worker'")
    assert {(row["worker_id"], row["worker"]) for row in lines} == {tuple(worker)}
    silent = await house.client.start("cli.talk", {"words": []})
    assert "printed nothing" in (await penstock("logs", silent)).err


async def test_a_missing_object_is_reported(house: Installation) -> None:
    for command in ("show", "history", "logs"):
        said = await penstock(command, uuid4())
        assert said.code == 1, command
        assert "hint:" in said.err, command
    assert (await penstock("show", "abc")).code == 2


async def test_a_run_is_watched_to_its_end(house: Installation) -> None:
    await house.start(*shop.ALL)
    ran = await house.client.start("shop.count", {"words": "a b"})
    watched = await penstock("watch", ran)
    assert (watched.code, "running" in watched.out, "completed" in watched.out) == (0, True, True)
    failed = await house.client.start("shop.flaky", {"failures": 9})
    moves = await penstock("watch", failed, "--json")
    assert (moves.code, moves.documents[-1]["new"]) == (1, "failed")
    assert (await penstock("watch", uuid4())).code == 1
