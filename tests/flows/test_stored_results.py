"""Results too large for the database are in the user's store, and are had again wherever they are used."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest

from penstock import Client, Defer, DurableContext, action, command_action
from penstock.errors import ConfigurationError, ExecutionFailed
from penstock.language.workflows import from_yaml
from penstock.operate import secrets
from penstock.operate.executions import described
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY

pytestmark = pytest.mark.either_transport

CAP = 4096
MOST = 400_000


@action(pack="large")
async def rows(count: int) -> list[int]:
    return list(range(count))


@action(pack="large", executor="process")
def rows_of_process(count: int) -> list[int]:
    return list(range(count))


rows_of_program = command_action(
    "large.rows_of_program", [sys.executable, "-c", "import json; print(json.dumps(list(range(9000))))"]
)


@action(pack="large")
async def total(given: list[int], times: int = 1) -> int:
    return sum(given) * times


@action(pack="large", retry={"max_attempts": 20, "initial_delay": 0.3})
async def rows_again(count: int) -> list[int]:
    return list(range(count))


@action(pack="large")
async def keyed(password: str) -> list[str]:
    return [password] * 1000


@action(pack="large")
async def carries() -> None:
    raise Defer(delay=0.1, state="x" * CAP)


@action(pack="large")
async def in_children(ctx: DurableContext) -> list[int]:
    large = await ctx.run(rows, count=5000)
    mapped = await ctx.map(rows, [{"count": 3000}, {"count": 10}])
    return [len(large), *map(len, mapped)]


PASSED = from_yaml("""
workflow: large.passed
tasks:
  rows: {action: large.rows, input: {count: 8000}}
  total: {action: large.total, needs: [rows], input: {given: "{{ tasks.rows.result }}", times: 2}}
output: {rows: "{{ tasks.rows.result }}", total: "{{ tasks.total.result }}"}
""")
LOOKED_INTO = from_yaml("""
workflow: large.looked_into
tasks:
  rows: {action: large.rows, input: {count: 8000}}
  first: {action: noop, needs: [rows], input: {first: "{{ tasks.rows.result[0] }}"}}
""")
COUNTED = from_yaml("""
workflow: large.counted
parameters: {count: {type: integer, required: true}}
tasks:
  rows: {action: large.rows, input: {count: "{{ parameters.count }}"}}
  many: {action: noop, needs: [rows], when: "{{ tasks.rows.result | length > 5 }}"}
output: {many: "{{ tasks.many.status }}"}
""")
PUBLISHED = from_yaml("""
workflow: large.published
tasks:
  rows: {action: large.rows, input: {count: 8000}, publish: {n: "{{ result | length }}"}}
output: {n: "{{ vars.n }}"}
""")
ALL = (
    rows,
    rows_of_process,
    rows_of_program,
    total,
    rows_again,
    keyed,
    carries,
    in_children,
    PASSED,
    LOOKED_INTO,
    COUNTED,
    PUBLISHED,
)


@pytest.fixture
async def house(make_house: Callable[..., Installation], tmp_path: Path) -> AsyncIterator[Installation]:
    (tmp_path / "store").mkdir()
    store = {"result_store": (tmp_path / "store").as_uri(), "result_store_cap": MOST}
    async with make_house(payload_cap=CAP, secrets_key=KEY, **store) as house:
        await house.start(*ALL)
        yield house


async def in_database(house: Installation, id: UUID) -> Any:
    description = await described(house.session, id)
    return description and description["result"]


def files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "store").rglob("*.json"))


@pytest.mark.parametrize("ref", ["large.rows", "large.rows_of_process", "large.rows_of_program"])
async def test_a_large_result_is_had_again_and_the_database_has_a_reference(
    house: Installation, tmp_path: Path, ref: str
) -> None:
    id = await house.client.start(ref, {} if ref.endswith("program") else {"count": 9000})
    assert await house.client.result(id, timeout=60) == list(range(9000))
    [file] = files(tmp_path)
    assert orjson.loads(file.read_bytes()) == list(range(9000))
    reference = await in_database(house, id)
    assert reference == {"$stored": f"{file.parent.name}/{file.name}", "bytes": file.stat().st_size}


async def test_a_small_result_is_where_it_was(house: Installation, tmp_path: Path) -> None:
    assert await house.client.run("large.rows", {"count": 10}, timeout=60) == list(range(10))
    assert not files(tmp_path)


async def test_a_workflow_passes_on_a_result_it_cannot_hold(house: Installation) -> None:
    numbers = list(range(8000))
    result = await house.client.run("large.passed", timeout=60)
    assert result == {"rows": numbers, "total": 2 * sum(numbers)}
    assert await house.client.run("large.counted", {"count": 10}, timeout=60) == {"many": "completed"}
    for ref, params in (
        ("large.looked_into", {}),
        ("large.counted", {"count": 8000}),
        ("large.published", {}),
    ):
        with pytest.raises(ExecutionFailed, match="in the result store, which expressions cannot read"):
            await house.client.run(ref, params, timeout=60)


async def test_a_durable_function_has_the_results_of_its_children(house: Installation) -> None:
    assert await house.client.run("large.in_children", timeout=60) == [5000, 3000, 10]


async def test_a_result_too_large_even_for_the_store_fails(house: Installation) -> None:
    with pytest.raises(ExecutionFailed, match=f"bytes; at most {MOST:,} are stored"):
        await house.client.run("large.rows", {"count": MOST}, timeout=60)
    with pytest.raises(ExecutionFailed, match=f"at most {CAP:,} are stored"):
        await house.client.run("large.carries", timeout=60)


async def test_a_store_that_takes_nothing_costs_an_attempt(house: Installation, tmp_path: Path) -> None:
    (tmp_path / "store").rmdir()
    id = await house.client.start("large.rows_again", {"count": 9000})
    while not await house.rows("select 1 from attempt where outcome = 'failed'"):
        await asyncio.sleep(0.05)
    (tmp_path / "store").mkdir()
    assert len(await house.client.result(id, timeout=60)) == 9000
    [error] = [row["error"] for row in await house.rows("select error from attempt where error is not null")]
    assert "could not be put into the result store" in error


@pytest.mark.parametrize("fault", ["changed", "gone", "too_much"])
async def test_a_stored_result_that_has_changed_is_not_used(
    house: Installation, tmp_path: Path, fault: str
) -> None:
    id = await house.client.start("large.rows", {"count": 9000})
    await house.client.result(id, timeout=60)
    reference: Any = await in_database(house, id)
    [file] = files(tmp_path)
    if fault == "changed":
        file.write_bytes(b"[1]")
    elif fault == "gone":
        file.unlink()
    else:
        reference = {**reference, "bytes": MOST + 1}
    messages = {
        "changed": "was changed after it was stored",
        "gone": "is not in the result store",
        "too_much": "are read",
    }
    with pytest.raises(ExecutionFailed, match=messages[fault]):
        await house.client.run("large.total", {"given": reference}, timeout=60)


async def test_a_stored_value_has_to_fit_like_a_given_one(house: Installation, tmp_path: Path) -> None:
    id = await house.client.start("large.keyed", {"password": "x" * 100})
    await house.client.result(id, timeout=60)
    texts = await in_database(house, id)
    with pytest.raises(ExecutionFailed, match="integer"):
        await house.client.run("large.total", {"given": texts}, timeout=60)


@pytest.mark.parametrize("name", ["../../etc/passwd", "2026-01-01/../../x.json", "/etc/passwd"])
async def test_no_other_file_is_ever_read(house: Installation, name: str) -> None:
    reference = {"$stored": name, "bytes": 5}
    with pytest.raises(Exception, match="array"):  # it is not a reference, but an object like others
        await house.client.run("large.total", {"given": reference}, timeout=60)


@pytest.mark.parametrize("secret", ["pass-word-of-the-shop", "json"])  # one that is in each reference, too
async def test_secrets_of_the_store_are_in_no_file(house: Installation, tmp_path: Path, secret: str) -> None:
    await secrets.put(house.session, "public", "large_key", secret, by="test")
    id = await house.client.start("large.keyed", {}, secrets={"password": "large_key"})
    assert await house.client.result(id, timeout=60) == ["***"] * 1000
    [file] = files(tmp_path)
    assert secret.encode() not in file.read_bytes()


async def test_a_client_without_the_store_is_refused_with_the_setting(house: Installation) -> None:
    id = await house.client.start("large.rows", {"count": 9000})
    await house.client.result(id, timeout=60)
    async with Client.connect(house.settings(result_store=None)) as other:
        with pytest.raises(ConfigurationError, match="no store is configured") as refused:
            await other.result(id, timeout=60)
    assert "PENSTOCK_RESULT_STORE" in str(refused.value.hint)


async def test_without_a_store_it_is_refused_as_before(make_house: Callable[..., Installation]) -> None:
    async with make_house(payload_cap=CAP) as house:
        await house.start(rows)
        id = await house.client.start("large.rows", {"count": 9000})
        with pytest.raises(ExecutionFailed, match=f"at most {CAP:,} are stored"):
            await house.client.result(id, timeout=60)
