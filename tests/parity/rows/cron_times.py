"""C1, C2, C7 to C9: what schedules say, and looking after them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any
from uuid import UUID

from penstock import Schedule
from tests.parity.host import Host
from tests.parity.site import Site

SEEDS = ("0 2 * * *", "*/15 * * * *", "0 9 * * MON-FRI", "0 0 1 * *", "0 */6 * * *", "30 2 * * SUN")
"""The expressions of the document that the table was made from."""
MORE = ("@daily", "*/10 0 0 * * *", "0 0 L * *", "0 12 * JAN-MAR,DEC 1#2", "5,35 8-18/2 * * *")
WRONG = {
    "61 * * * *": "minute",
    "* * * * FOO": "day-of-week",
    "* * *": "field",
    "30 2 30 2 *": "no day 30",
    "": "",
}
# Zone, expression, the day before, what the local clock shows at the next three fires.
CLOCKS = (
    (
        "Europe/Berlin",
        "30 2 * * *",
        "2030-03-30",
        ["03-30T02:30:00+01:00", "03-31T03:00:00+02:00", "04-01T02:30:00+02:00"],
    ),
    (
        "Europe/Berlin",
        "30 2 * * *",
        "2030-10-26",
        ["10-26T02:30:00+02:00", "10-27T02:30:00+02:00", "10-28T02:30:00+01:00"],
    ),
    (
        "America/New_York",
        "30 2 * * *",
        "2030-03-09",
        ["03-09T02:30:00-05:00", "03-10T03:00:00-04:00", "03-11T02:30:00-04:00"],
    ),
    (
        "America/New_York",
        "15 1 * * *",
        "2030-11-02",
        ["11-02T01:15:00-04:00", "11-03T01:15:00-04:00", "11-04T01:15:00-05:00"],
    ),
    (
        "Australia/Lord_Howe",
        "15 2 * * *",
        "2030-10-04",
        ["10-05T02:15:00+10:30", "10-06T02:30:00+11:00", "10-07T02:15:00+11:00"],
    ),
    (
        "Asia/Kolkata",
        "30 2 * * *",
        "2030-03-29",
        ["03-30T02:30:00+05:30", "03-31T02:30:00+05:30", "04-01T02:30:00+05:30"],
    ),
)


async def c01_expressions(host: Host) -> str:
    """5-field expressions with names, steps, ranges; validated with a message that says where; IANA zones; preview of next N."""
    site = await host.shared()
    expressions = (*SEEDS, *MORE)
    lines = [
        f'Schedule("cron.c01_{n}", action="cron.tell", cron={expression_text!r})'
        for n, expression_text in enumerate(expressions)
    ]
    await site.apply("\n".join(["from penstock import Schedule", *lines]), "c01.py")
    for n, expression in enumerate(expressions):
        instants = [fire.instant for fire in await site.client.schedules.preview(f"cron.c01_{n}", 3)]
        assert len(instants) == 3, f"{expression}: {instants}"
        assert instants == sorted(set(instants)), f"{expression}: {instants}"
        await site.client.schedules.delete(f"cron.c01_{n}")
    first = (await site.command("schedule", "preview", SEEDS[0], "--count", 3, "--json")).lines[0]["instant"]
    refused = await asyncio.gather(
        *(site.command("schedule", "preview", expression, code=None) for expression in WRONG),
        site.command("schedule", "preview", "0 2 * * *", "--timezone", "Mars/Olympus", code=None),
    )
    for (expression, word), answer in zip([*WRONG.items(), ("Mars/Olympus", "Mars")], refused, strict=True):
        assert answer.code != 0, f"{expression!r} was taken"
        assert word in answer.all, f"{expression!r} was refused without {word!r}: {answer.all}"
    at = datetime.fromisoformat(first)
    assert (at.hour, at.minute) == (2, 0)
    return (
        f"{len(expressions)} expressions of the seeds and beyond, previewed; refused with their place: "
        f"{refused[0].all.strip().splitlines()[0]}"
    )


async def c02_clock_changes(host: Host) -> str:
    """DST defined for the gap and the overlap, in several zones both ways: fixed times once, intervals by elapsed time."""
    site = await host.shared()

    async def one(number: int, zone: str, expression: str, day: str, wanted: list[str]) -> None:
        ref = f"cron.c02_{number}"
        await site.client.schedules.put(
            Schedule(
                ref, action="cron.tell", cron=expression, timezone=zone, starts_at=f"{day}T00:00:00+00:00"
            )
        )
        previewed = [p.local.isoformat() for p in await site.client.schedules.preview(ref, len(wanted))]
        local_times = [local[5:] for local in previewed]
        assert local_times == wanted, f"{expression} in {zone} from {day}: {local_times}, wanted {wanted}"

    await asyncio.gather(*(one(number, *case) for number, case in enumerate(CLOCKS)))
    hourly: dict[str, dict[str, Any]] = {
        "cron.c02_every": {"every": "1h"},
        "cron.c02_cron": {"cron": "0 * * * *"},
    }
    for ref, when in hourly.items():
        await site.schedule(
            ref, "cron.tell", timezone="Europe/Berlin", starts_at="2030-10-26T22:00:00+00:00", **when
        )
        instants = [p.instant for p in await site.client.schedules.preview(ref, 6)]
        steps = {b - a for a, b in pairwise(instants)}
        assert steps == {timedelta(hours=1)}, f"{ref} steps by {steps} over the hour that comes twice"
    return (
        f"{len(CLOCKS)} fixed times over gaps and repeated hours in 4 zones fire once a day, in a gap as it "
        "ends; intervals step by elapsed time"
    )


async def c07_looking_after(host: Host) -> str:
    """Enable, disable, update, delete, list, history, stats, start and end dates, overlap policy."""
    site = await host.shared()
    policies = ("allow", "skip", "queue", "replace")
    await asyncio.gather(
        *(
            site.schedule(f"cron.c07_{policy}", "cron.work", param="seconds=2.4", every="1s", overlap=policy)
            for policy in policies
        ),
        site.schedule("cron.c07", "cron.tell", "--disabled", every="1s"),
    )
    fired = {}
    for policy in policies:
        await site.until(partial(_fired, site, f"cron.c07_{policy}", 6), f"six fires of {policy}")
        fired[policy] = await site.client.schedules.history(f"cron.c07_{policy}")
        await site.client.schedules.disable(f"cron.c07_{policy}")
    beside = {}
    for policy, fires in fired.items():
        ids = [fire.execution_id for fire in fires if fire.execution_id]
        spans = [await _span(site, id) for id in ids]
        lived = [span for span in spans if span]
        beside[policy] = max(sum(a <= start < b for a, b in lived) for start, _ in lived)
        skipped = sum(fire.status == "skipped" for fire in fires)
        if policy != "replace":
            assert (skipped > 0) == (policy == "skip"), f"overlap={policy}: {skipped} skipped"
    assert beside["allow"] >= 2, f"overlap=allow ran {beside['allow']} at once"
    assert {beside[policy] for policy in ("skip", "queue", "replace")} == {1}, f"ran at once: {beside}"
    assert not await site.client.schedules.history("cron.c07"), "a disabled schedule fired"
    await site.command("schedule", "run", "cron.c07")
    await site.command("schedule", "enable", "cron.c07")
    await site.until(lambda: _fired(site, "cron.c07", 3), "an enabled schedule to fire")
    end = (datetime.now(UTC) + timedelta(hours=1)).isoformat(timespec="seconds")
    await site.command("schedule", "update", "cron.c07", "--every", "1h", "--ends-at", end)
    output, stats, listed, history = await asyncio.gather(
        *(
            site.command("schedule", *words, "--json")
            for words in (["show", "cron.c07"], ["stats", "cron.c07"], ["list"], ["history", "cron.c07"])
        )
    )
    assert output.one["definition"]["every"] == 3600, f"after the update: {output.out}"
    assert stats.one["fires"] >= 3, f"stats: {stats.out}"
    assert "cron.c07_skip" in listed.out
    fire = history.lines[0]
    assert fire["status"] == "created"
    await site.command("schedule", "delete", "cron.c07")
    gone = await site.command("schedule", "show", "cron.c07", code=None)
    assert gone.code != 0, "a deleted schedule is still shown"
    assert {"started_at", "began_at", "start"} & set(fire), (
        f"the history has no actual start time of a fire: {sorted(fire)}"
    )
    return f"all verbs; ran at once under overlap: {beside}; a fire's record: {', '.join(sorted(fire))}"


async def c08_metrics_and_health(host: Host) -> str:
    """Metrics (total, active, per minute, lag, failure rate, recoveries) and a health check that names what is wrong."""
    async with host.site(executors=1, workers=1) as site:
        await site.schedule("cron.c08", "cron.tell", every="1s")
        await site.schedule("cron.c08_off", "tasks.needs_file", param="file=/nowhere/x", every="1s")
        [executor] = [s for s in site.services if s.name == "executor-1"]
        names = ("total", "active", "late", "broken", "erroring", "orphaned")
        expected = {f"penstock_schedules_{name}" for name in names} | {
            f"penstock_schedule_{name}"
            for name in (
                "fires_per_minute",
                "lag_seconds",
                "failure_rate",
                "run_seconds",
                "recoveries_total",
                "fires_created_total",
            )
        }

        values_seen: dict[str, Any] = {}

        async def told() -> Any:
            body = (await executor.get("/metrics"))[1]
            missing = {name for name in expected if f"\n{name} " not in body and f"\n{name}{{" not in body}
            values = {
                name: await executor.metric(name)
                for name in (
                    "penstock_schedules_total",
                    "penstock_schedules_erroring",
                    "penstock_schedule_failure_rate",
                )
            }
            values_seen.update(values, missing=missing)
            return values if not missing and values["penstock_schedules_erroring"] else None

        values = await site.until(told, values_seen, 100)
        assert values["penstock_schedules_total"] == 2, f"metrics: {values}"
        assert values["penstock_schedule_failure_rate"] > 0, f"metrics: {values}"
        health = await site.command("schedule", "health", code=1)
        assert "cron.c08_off" in health.out, f"health does not name what errs: {health.all}"
        executor.kill()
        none = await site.until(lambda: _unhealthy(site), "health to miss the executor", 150)
        doctor = await site.command("doctor", code=1)
        assert "executor" in doctor.all
    return f"12 metrics of schedules ({values}); health names the one that errs, and says without an executor: {none}"


async def c09_context_and_retry(host: Host) -> str:
    """A schedule's own context and retry policy; context into the run: scheduled_time, schedule id, zone,
    expression, is_recovery."""
    site = await host.shared()
    region, day = ("--context", "region=east"), ("--param", "day={{ scheduled_time[:10] }}")
    await asyncio.gather(
        site.schedule("cron.c09", "cron.tell", *region, *day, timezone="Asia/Tokyo", cron="* * * * * *"),
        site.schedule("cron.c09_retry", "cron.second_try", every="1s", max_attempts="3"),
    )
    for ref in ("cron.c09", "cron.c09_retry"):
        await site.until(partial(_fired, site, ref, 1), f"{ref} to fire")
        await site.client.schedules.disable(ref)
    fire = (await site.client.schedules.history("cron.c09"))[-1]
    context = await _result(site, fire.execution_id)
    assert context["schedule"] == "cron.c09", f"told: {context}"
    assert datetime.fromisoformat(context["scheduled_time"]) == fire.due_at, (
        f"{context['scheduled_time']} is not {fire.due_at}"
    )
    assert context["scheduled_time"].endswith("+09:00")
    assert context["day"] == context["scheduled_time"][:10]
    assert (context["timezone"], context["expression"], context["region"]) == (
        "Asia/Tokyo",
        "* * * * * *",
        "east",
    )
    assert (context["is_recovery"], context["is_missed"], context["is_backfill"]) == (False, False, False)
    retried = (await site.client.schedules.history("cron.c09_retry"))[-1]
    assert await _result(site, retried.execution_id) == 2, "the schedule's retry policy did not hold"
    refused = await site.schedule("cron.c09_own", "cron.tell", every="1s", context="schedule=mine", code=None)
    assert refused.code != 0, "a schedule's context may replace what the run is told"
    return (
        f"a run was told {', '.join(sorted(context))}; params were templates over it; a retry policy of its own "
        "gave it a second try"
    )


# -- looking ---------------------------------------------------------------------------------------------------------


async def _fired(site: Site, ref: str, count: int) -> bool:
    return len(await site.client.schedules.history(ref)) >= count


async def _span(site: Site, id: Any) -> tuple[datetime, datetime] | None:
    """From when to when it ran; None if it never did."""
    if not await site.value("select count(*) from execution where id = $1", id):
        return None  # it stood in line when its schedule was disabled
    await site.ends(id)
    moves = await site.client.history(id)
    starts = [move.at for move in moves if move.new == "running"]
    return (starts[0], moves[-1].at) if starts else None


async def _result(site: Site, id: UUID | None) -> Any:
    assert id, "a fire without an execution"
    return await site.client.result(id, timeout=60)


async def _unhealthy(site: Site) -> str | None:
    result = await site.command("schedule", "health", code=None)
    return next((line.strip() for line in result.out.splitlines() if "no executor" in line), None)
