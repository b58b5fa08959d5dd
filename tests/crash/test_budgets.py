"""kill -9 of executors and workers while trees of executions spend budgets. The oracle compares the ledger with the history and
with what each call noted in a file.

`PENSTOCK_TEST_BUDGET_CALLS=10000 PENSTOCK_TEST_BUDGET_KILLS=200` is the long form; `-s` prints its figures.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from penstock.operate.executions import described
from penstock.store.session.database import Row
from tests.crash import budget_work
from tests.crash.budget_work import RESERVED
from tests.crash.processes import Fleet
from tests.flows.installation import Installation

CALLS = int(os.environ.get("PENSTOCK_TEST_BUDGET_CALLS", "400"))
KILLS = int(os.environ.get("PENSTOCK_TEST_BUDGET_KILLS", "6"))
BRANCHES, TWIGS, LEAVES = 2, 5, 20
EACH = BRANCHES * TWIGS * LEAVES
"""Calls of a tree."""
EXECUTORS, WORKERS = 2, 3
AMPLE, SCANT = 20 * EACH, 7 * EACH
"""Budgets that every second tree gets: enough, and too little."""
SLACK_S = 0.5
"""An attempt that ended this shortly before an admission may have been under way at it: its instant is older than its lock."""

ATTEMPTS = """
select h.execution_id::text as execution, h.attempt,
    coalesce(t.outcome, case when e.attempt = h.attempt then e.status end) as outcome
from history h join execution e on e.id = h.execution_id join definition d on d.id = e.definition_id and d.ref = 'trees.call'
left join attempt t on t.execution_id = h.execution_id and t.attempt = h.attempt where h.new = 'running'
"""
LEDGER = """
select y.owner::text, y.execution_id::text as execution, y.attempt, y.reserved::float8, y.spent::float8,
    extract(epoch from a.at)::float8 as admitted, extract(epoch from x.at)::float8 as ended
from budget_entry y
left join (
    select execution_id, attempt, max(admitted_at) as at from admission group by 1, 2) a using (execution_id, attempt)
left join (
    select execution_id, attempt, max(at) as at from history where new not in ('running', 'canceling')
    group by 1, 2) x using (execution_id, attempt)
"""
BUSY = """
select 1 where exists (
    select from execution e join definition d on d.id = e.definition_id and d.ref = 'trees.call' where e.status = 'running')
or not exists (select from execution where finished_at is null)
"""
BUDGETS = "select owner::text, amount::float8 from budget"


def faults(
    attempts: Sequence[Row], entries: Sequence[Row], noted: Mapping[tuple[str, int], float]
) -> Iterator[str]:
    """Yield a sentence for each attempt that the ledger lacks, has twice, or has with a wrong cost."""
    ledger: defaultdict[tuple[str, int], list[Row]] = defaultdict(list)
    for entry in entries:
        ledger[entry["execution"], entry["attempt"]].append(entry)
    outcomes = {(row["execution"], row["attempt"]): row["outcome"] for row in attempts}
    for name in outcomes.keys() | ledger.keys():
        if len(ledger[name]) != 1 or name not in outcomes:
            yield f"{name} is {len(ledger[name])} times in the ledger, with the outcome {outcomes.get(name)}"
            continue
        [entry] = ledger[name]
        if entry["reserved"] != RESERVED:
            yield f"{name} has reserved {entry['reserved']}"
        expected = noted.get(name) if outcomes[name] in ("completed", "failed") else None
        if entry["spent"] != expected and not (
            outcomes[name] == "cancelled" and entry["spent"] == noted.get(name)
        ):
            yield f"{name} ended as {outcomes[name]} and took {noted.get(name)}, the ledger has {entry['spent']}"


def overspent(entries: Sequence[Row], amount: float) -> float:
    """Return what was spent above the budget and above what the attempts that were under way at the last admission took beyond
    their reservations."""
    last = max(entry["admitted"] for entry in entries)
    beyond = sum(
        max(entry["spent"] - entry["reserved"], 0)
        for entry in entries
        if entry["spent"] is not None and entry["ended"] > last - SLACK_S
    )
    return _total(entries) - amount - float(beyond)


def _total(entries: Sequence[Row]) -> float:
    return float(sum(entry["reserved"] if entry["spent"] is None else entry["spent"] for entry in entries))


async def test_ledger_is_the_sum_of_attempts_beside_kills(
    house: Installation, database: str, broker: str | None, tmp_path: Path
) -> None:
    costs, draw = tmp_path / "costs", random.Random(KILLS)
    costs.touch()
    await house.apply(*budget_work.ALL)
    with Fleet(database, broker, tmp_path / "services.log") as fleet:
        fleet.environment[budget_work.COSTS] = str(costs)
        roles: dict[int, str] = {}

        def start(role: str) -> None:
            module = ("--module", "tests.crash.budget_work", "--concurrency", "10")
            roles[fleet.start(role, *(module if role == "worker" else ())).pid] = role

        for role in ["executor"] * EXECUTORS + ["worker"] * WORKERS:
            start(role)
        trees = -(-CALLS // EACH)
        roots = 0
        for kill in range(KILLS):
            while roots * KILLS < trees * (kill + 1):
                await _plant(house, roots)
                roots += 1
            await house.until(BUSY, seconds=120)
            await asyncio.sleep(draw.uniform(0, 0.5))
            victim = draw.choice(fleet.alive)
            fleet.kill(victim)
            start(roles.pop(victim.pid))
        await house.quiet(seconds=120 + CALLS / 20)
    lines = [line.split() for line in costs.read_text().splitlines()]
    noted = {(execution, int(attempt)): float(cost) for execution, attempt, cost in lines}
    attempts, entries = await house.rows(ATTEMPTS), await house.rows(LEDGER)
    assert not list(faults(attempts, entries, noted))[:20]
    amounts = {row["owner"]: row["amount"] for row in await house.rows(BUDGETS)}
    assert len(amounts) == trees
    spent = 0
    for owner, amount in amounts.items():
        own = [entry for entry in entries if entry["owner"] == owner]
        assert overspent(own, amount) <= 0
        document = await described(house.session, own[0]["owner"])
        assert document is not None
        [budget] = document["budgets"]
        assert budget["used"] + budget["reserved"] == _total(own)
        spent += budget["remaining"] < RESERVED
    print(
        f"{trees} trees, {fleet.killed} kills: {len(lines)} calls in {len(attempts)} attempts, "
        f"{sum(row['outcome'] == 'lost' for row in attempts)} lost, {spent} budgets spent, "
        f"{sum(entry['spent'] is None for entry in entries)} entries keep their reservations"
    )
    assert fleet.killed == KILLS
    await house.sound()


async def _plant(house: Installation, number: int) -> None:
    numbers = iter(range(EACH))
    parts = [[[next(numbers) for _ in range(LEAVES)] for _ in range(TWIGS)] for _ in range(BRANCHES)]
    amount = SCANT if number % 2 else AMPLE
    await house.client.start(budget_work.tree, {"parts": parts}, budget={"tokens": amount})
