"""Limits with costs: reserved at admission, settled at the end of an attempt, refused where they never fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from penstock import Limit
from penstock.operate.why import why
from penstock.settings import Settings
from tests.penstock.store.admission.desk import Desk, later

TOKENS = Limit(
    90_000, per="1m", ref="shop.tokens", scope="shop", cost="{{ parameters.tokens }}", unit="tokens"
)
MEMORY = Limit(80, ref="shop.memory", scope="shop", cost="{{ parameters.gb | default(8) }}")
SETTLE = "select settle_costs($1, $2::uuid[], $3::integer[], $4::text[], $5::numeric[])"


async def start(
    desk: Desk, *params: Mapping[str, Any], ref: str = "shop.charge", priority: int = 0
) -> list[UUID]:
    """Start one execution after the other."""
    ids: list[UUID] = []
    for values in params:
        ids += await desk.start(1, ref, priority=priority, **values)
    return ids


async def end(
    desk: Desk, id: UUID, cost: float | None = None, unit: str = "tokens", attempt: int = 1
) -> None:
    """End a claimed attempt, which reports its true cost."""
    async with desk.database.session().transaction() as tx:
        if cost is not None:
            await tx.fetch(SETTLE, desk.worker, [id], [attempt], [unit], [Decimal(str(cost))])
        await desk.finish([id], session=tx)


async def costs(desk: Desk, ids: Sequence[UUID]) -> list[float | None]:
    """Return the cost of the admission of each."""
    rows = await desk.session.fetch("select execution_id, cost from admission")
    by_id = {row["execution_id"]: row["cost"] for row in rows}
    return [None if by_id[id] is None else float(by_id[id]) for id in ids]


async def test_costs_are_reserved_in_the_window(desk: Desk) -> None:
    await desk.open(TOKENS)
    ids = await start(desk, {"tokens": 50_000}, {"tokens": 40_000}, {"tokens": 1}, {"tokens": 0})
    assert await desk.scheduled(ids) == [0, 1]
    await later(desk, 59)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    await later(desk, 2)
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1, 2, 3]
    await desk.sound()


async def test_small_cost_never_passes_a_large_one(desk: Desk) -> None:
    await desk.open(MEMORY)
    ids = await start(desk, {"gb": 50}, {"gb": 40}, {"gb": 1}, {})
    assert await desk.scheduled(ids) == [0]
    assert await desk.claim(ids[:1]) == ids[:1]
    await end(desk, ids[0])
    assert await desk.scheduled(ids) == [1, 2, 3]
    await desk.sound()


async def test_cost_above_the_limit_is_refused_with_figures(desk: Desk) -> None:
    await desk.open(TOKENS, MEMORY)
    ids = await start(desk, {"tokens": 120_000}, {"tokens": 5, "gb": 80.5}, {"gb": 1}, {"tokens": -1})
    assert await desk.statuses(ids) == ["cancelled"] * 4
    assert await desk.reasons(ids) == [
        "refused: needs 120,000 tokens, and the limit shop.tokens allows 90,000 tokens in 60 s",
        "refused: needs 80.5, and the limit shop.memory allows 80 at once",
        "refused: its cost under the limit shop.tokens is not a number of zero or more: {{ parameters.tokens }}",
        "refused: its cost under the limit shop.tokens is not a number of zero or more: {{ parameters.tokens }}",
    ]
    submitted, _ = await desk.submit_group([{"tokens": 90_001}, {"tokens": 90_000}, {"tokens": "many"}])
    assert sorted(await desk.statuses(submitted)) == ["cancelled", "cancelled", "scheduled"]
    await desk.sound()


async def test_lower_true_cost_promotes_the_next(desk: Desk) -> None:
    await desk.open(TOKENS)
    ids = await start(desk, {"tokens": 60_000}, {"tokens": 60_000}, {"tokens": 25_000})
    assert await desk.claim(ids[:1]) == ids[:1]
    await end(desk, ids[0], 5_000.5)
    assert await costs(desk, ids[:2]) == [5_000.5, 60_000]
    assert await desk.statuses(ids) == ["completed", "scheduled", "queued"]  # 24,999.5 are left
    await desk.sound()


async def test_higher_true_cost_delays_the_next(desk: Desk) -> None:
    await desk.open(TOKENS)
    ids = await start(desk, {"tokens": 40_000})
    await desk.claim(ids)
    await end(desk, ids[0], 200_000)
    ids += await start(desk, {"tokens": 0}, {"tokens": 1})
    assert await desk.scheduled(ids) == []
    await later(desk, 61)
    await desk.tidy()
    assert await desk.scheduled(ids) == [1, 2]
    await desk.sound()


async def test_stale_attempt_settles_nothing(desk: Desk) -> None:
    await desk.open(TOKENS)
    ids = await start(desk, {"tokens": 40_000})
    await desk.claim(ids)
    await desk.session.fetch(SETTLE, desk.worker, ids, [2], ["tokens"], [Decimal(1)])
    await desk.session.fetch(SETTLE, ids[0], ids, [1], ["tokens"], [Decimal(1)])
    await desk.session.fetch(SETTLE, desk.worker, ids, [1], ["euros"], [Decimal(1)])
    assert await costs(desk, ids) == [40_000]
    await desk.session.fetch(SETTLE, desk.worker, ids, [1], ["tokens"], [Decimal(1)])
    assert await costs(desk, ids) == [1]


async def test_waiter_above_a_lowered_limit_starts_alone(desk: Desk) -> None:
    await desk.open(MEMORY)
    ids = await start(desk, {"gb": 70}, {"gb": 60})
    await desk.apply(Limit(50, ref="shop.memory", scope="shop", cost="{{ parameters.gb | default(8) }}"))
    await desk.tidy()
    assert await desk.statuses(ids) == ["scheduled", "queued"]
    await desk.claim(ids[:1])
    await end(desk, ids[0])
    assert await desk.scheduled(ids) == [1]
    assert await costs(desk, ids) == [70, 50]
    await desk.sound()


async def test_first_of_a_lane_that_leaves_lets_smaller_ones_start(desk: Desk) -> None:
    await desk.open(MEMORY)
    ids = await start(desk, {"gb": 50}, {"gb": 40}, {"gb": 30})
    await desk.cancel(ids[1:2])
    assert await desk.statuses(ids) == ["scheduled", "cancelled", "scheduled"]
    await desk.sound()


async def test_first_in_line_by_priority_starts_where_it_fits(desk: Desk) -> None:
    await desk.open(MEMORY)
    ids = await start(desk, {"gb": 50}, {"gb": 40})
    ids += await start(desk, {"gb": 30}, priority=5)
    assert await desk.scheduled(ids) == [0, 2]
    await desk.sound()


async def test_many_that_fit_start_together(desk: Desk) -> None:
    await desk.open(MEMORY)
    first = await start(desk, {"gb": 80})
    ids = await start(desk, *[{"gb": 0.5}] * 150, {"gb": 10})
    await desk.claim(first)
    await end(desk, first[0])
    await desk.tidy()
    assert await desk.scheduled(ids) == list(range(150))
    await desk.sound()


async def test_a_changed_cost_holds_for_waiters(desk: Desk) -> None:
    await desk.open(MEMORY)
    ids = await start(desk, {"gb": 50}, {"gb": 40}, {"gb": 40})
    await desk.apply(Limit(80, ref="shop.memory", scope="shop", cost="{{ 0.5 * parameters.gb + 5 }}"))
    await desk.tidy()
    assert await desk.scheduled(ids) == [0, 1]
    assert await costs(desk, ids[:2]) == [50, 25]


async def test_plain_and_weighted_keys_are_needed_together(desk: Desk) -> None:
    await desk.open(MEMORY, Limit(1, ref="shop.each", scope="shop.charge", by="customer"))
    ids = await start(
        desk,
        {"gb": 50, "customer": "a"},
        {"gb": 20, "customer": "a"},
        {"gb": 20, "customer": "b"},
        {"gb": 20, "customer": "c"},
        {"gb": 10, "customer": "d"},
    )
    # The second waits for its customer, and lets others pass. The fourth waits for memory, and keeps the fifth waiting.
    assert await desk.scheduled(ids) == [0, 2]
    await desk.claim(ids[:1])
    await end(desk, ids[0])
    assert await desk.scheduled(ids) == [1, 2, 3, 4]
    await desk.sound()


async def test_a_full_limit_with_costs_refuses_without_room(desk: Desk) -> None:
    await desk.open(
        Limit(80, ref="shop.memory", scope="shop", cost="{{ parameters.gb }}", when_full="cancel_new")
    )
    ids = await desk.request(1, gb=50) + await desk.request(1, gb=20) + await desk.request(1, gb=20)
    await desk.admit(ids)
    assert await desk.statuses(ids) == ["scheduled", "scheduled", "cancelled"]
    await desk.sound()


async def test_why_names_the_figures(desk: Desk) -> None:
    await desk.open(TOKENS)
    ids = await start(desk, {"tokens": 81_900}, {"tokens": 12_300}, {"tokens": 5})
    answer = await why(desk.session, ids[1], Settings(database_url=desk.session.settings.database_url))
    assert answer.because == "rate"
    assert answer.says.startswith(
        "Waits for the limit shop.tokens: it needs 12,300 tokens, and 8,100 of 90,000 are left in this minute, refilled in "
    )
    assert answer.says.endswith("This execution is 1st in line.")
    assert (answer.facts["needs"], answer.facts["left"], answer.facts["unit"]) == (12_300, 8_100, "tokens")
    behind = await why(desk.session, ids[2], Settings(database_url=desk.session.settings.database_url))
    assert behind.says.endswith("This execution is 2nd in line.")


async def test_amount_of_any_size_is_written_in_digits(desk: Desk) -> None:
    texts = await desk.session.fetch(
        "select amount_text(n, 'tokens') from unnest(array[1.5, 12300, 1e15, 1e18, 1.7e308, -1e20]::numeric[]) n"
    )
    assert [text for (text,) in texts] == [
        "1.5 tokens",
        "12,300 tokens",
        "1,000,000,000,000,000 tokens",
        "1.00e+18 tokens",
        "1.70e+308 tokens",
        "-1.00e+20 tokens",
    ]
