"""`penstock schedule ...`, as people and programs see it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import orjson
import pytest

from penstock import Schedule, cli
from tests.flows import shop
from tests.penstock.store.schedules.conftest import House

REF = "clock.daily"


class Terminal:
    """Runs commands in this process and gives what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    async def run(self, *words: str, code: int = 0) -> str:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            await asyncio.to_thread(cli.main, ["schedule", *words])
        said = self._capsys.readouterr()
        assert ended.value.code in (code, None if code == 0 else code), said.err
        return said.out if code == 0 else said.out + said.err

    async def json(self, *words: str) -> list[dict[str, Any]]:
        return [orjson.loads(line) for line in (await self.run(*words, "--json")).splitlines()]


@pytest.fixture
async def terminal(
    house: House, database: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Terminal:
    monkeypatch.setenv("PENSTOCK_DATABASE_URL", database)
    monkeypatch.setenv("COLUMNS", "200")
    daily = Schedule(
        REF, action=shop.charge, params={"order": 1}, cron="30 2 * * *", timezone="Europe/Berlin"
    )
    await house.apply(*shop.ALL, daily)
    return Terminal(capsys)


async def test_schedules_are_listed_and_shown_with_their_next_fire(terminal: Terminal) -> None:
    [row] = await terminal.json("list")
    assert (row["ref"], row["state"], row["when"], row["timezone"]) == (
        REF,
        "active",
        "30 2 * * *",
        "Europe/Berlin",
    )
    assert "02:30:00+0" in row["next"]
    assert "shop.charge" in await terminal.run("list")
    [shown] = await terminal.json("show", REF)
    assert shown["definition"]["cron"] == "30 2 * * *"
    assert "Europe/Berlin" in await terminal.run("show", REF)


async def test_a_preview_notes_the_changes_of_the_clocks(terminal: Terminal) -> None:
    fires = await terminal.json("preview", REF, "-n", "400")
    assert len(fires) == 400
    assert [fire["note"] for fire in fires if fire["note"]] != []
    assert len(await terminal.json("preview", "@hourly")) == 10


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("30 2 30 2 *",), "no day 30 in FEB"),
        (("0 2 * * FUNDAY",), "character 9"),
        (("0 2 * * *", "--timezone", "Europe/Pariss"), "Europe/Paris"),
    ],
)
async def test_a_wrong_expression_is_refused_with_the_place(
    terminal: Terminal, words: tuple[str, ...], says: str
) -> None:
    assert says in await terminal.run("preview", *words, code=1)


async def test_a_schedule_is_disabled_enabled_paused_and_deleted(terminal: Terminal) -> None:
    assert "disabled" in await terminal.run("disable", REF)
    assert [row["state"] for row in await terminal.json("list")] == ["disabled"]
    assert "fires next at" in await terminal.run("enable", REF)
    [row] = await terminal.json("pause", REF, "--for", "2h")
    assert row["state"] == "paused"
    assert "not a duration" in await terminal.run("pause", REF, "--for", "soon", code=1)
    await terminal.run("delete", REF)
    assert await terminal.json("list") == []
    assert "no schedule" in await terminal.run("enable", REF, code=1)


async def test_a_backfill_is_tried_done_and_seen_in_history_and_stats(
    terminal: Terminal, house: House
) -> None:
    words = ("backfill", REF, "--from", "2026-03-28", "--to", "2026-03-30T12:00:00+02:00")
    tried = await terminal.json(*words, "--dry-run")
    assert [one["due"] for one in tried] == [
        "2026-03-28T01:30:00+00:00",
        "2026-03-29T01:00:00+00:00",
        "2026-03-30T00:30:00+00:00",
    ]
    assert await house.statuses() == {}
    assert "3 fires were started" in await terminal.run(*words)
    assert "0 fires were started, and 3 had been started before" in await terminal.run(*words)
    history = await terminal.json("history", REF)
    assert [fire["kind"] for fire in history] == ["backfill"] * 3
    assert "backfill" in await terminal.run("history", REF, "--limit", "1")
    [stats] = await terminal.json("stats", REF, "--last", "30000d")
    assert (stats["fires"], stats["backfilled"], stats["open"]) == (3, 3, 3)
    assert "lag average" in await terminal.run("stats", REF)
    assert "not an instant" in await terminal.run("backfill", REF, "--from", "yesterday", code=1)


async def test_firing_now_names_the_execution(terminal: Terminal, house: House) -> None:
    said = await terminal.run("run", REF)
    [[id]] = await house.rows("select id::text from execution")
    assert f"penstock show {id}" in said


async def test_health_names_the_schedule_and_fails(terminal: Terminal, house: House) -> None:
    await house.rows("insert into process (id, kind, name) values (gen_random_uuid(), 'executor', 'here')")
    assert "No schedule has a problem." in await terminal.run("health")
    await house.sleep(REF, timedelta(0))
    await house.rows("update schedule set next_due = now() - interval '1 hour'")
    said = await terminal.run("health", code=1)
    assert "late" in said
    assert REF in said


async def test_a_schedule_is_made_and_changed_on_the_command_line(terminal: Terminal, house: House) -> None:
    [made] = await terminal.json(
        *("create", "clock.typed", "--action", "shop.charge", "--cron", "*/5 9 * * MON-FRI", "-p", "order=7"),
        *("--timezone", "Asia/Tokyo", "-c", "region=east", "--overlap", "skip", "--missed", "delay"),
        *("--delay", "2m", "--catch-up", "all", "--at-most", "5", "--max-attempts", "4", "--jitter", "3s"),
        *("--priority", "-5", "--expires", "10m"),
    )
    assert (made["what"], made["state"], made["when"]) == ("new", "active", "*/5 9 * * MON-FRI")
    [shown] = await terminal.json("show", "clock.typed")
    assert shown["definition"] == {
        "ref": "clock.typed",
        "action": "shop.charge",
        "cron": "*/5 9 * * MON-FRI",
        "timezone": "Asia/Tokyo",
        "params": {"order": 7},
        "context": {"region": "east"},
        "overlap": "skip",
        "missed": {"policy": "delay", "delay": 120, "catch_up": "all", "at_most": 5},
        "retry": {"max_attempts": 4},
        "jitter": 3,
        "priority": -5,
        "expires": 600,
    }
    assert (shown["priority"], shown["expires"]) == (-5, 600)
    assert "10 min after the due instant" in await terminal.run("show", "clock.typed")
    assert "is changed" in await terminal.run("update", "clock.typed", "--every", "90s", "--grace", "1m")
    [shown] = await terminal.json("show", "clock.typed")
    assert (shown["when"], shown["definition"]["missed"]["grace"]) == ("@every 1m30s", 60)
    assert shown["definition"]["params"] == {"order": 7}
    assert "is unchanged" in await terminal.run("update", "clock.typed", "--every", "90s")
    await house.sleep("clock.typed", timedelta(minutes=2))
    # Two fires may be due in these two minutes. The second one finds the first one's execution open, and is skipped.
    assert (await house.fire("clock.typed")).counts["created"] == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("create", "clock.x", "--cron", "@daily"), "needs an action"),
        (("create", "clock.x", "--action", "shop.charge"), "needs exactly one time"),
        (("create", "clock.x", "--action", "shop.charg", "--cron", "@daily"), "Did you mean 'shop.charge'?"),
        (("create", "clock.x", "--action", "shop.charge", "--cron", "61 * * * *"), "wrong at character 1"),
        (("create", REF, "--action", "shop.charge", "--cron", "@daily"), "penstock schedule update"),
        (("update", "clock.x", "--cron", "@daily"), "penstock schedule create"),
        (("update", REF, "--disabled"), "penstock schedule disable"),
        (("update", REF, "--context", "scheduled_time=9"), "is set by Penstock"),
        (("update", REF, "--at-most", "9"), "at_most does nothing without catch_up: all"),
    ],
)
async def test_a_mistyped_schedule_is_refused_with_a_remedy(
    terminal: Terminal, words: tuple[str, ...], says: str
) -> None:
    assert says in await terminal.run(*words, code=1)
