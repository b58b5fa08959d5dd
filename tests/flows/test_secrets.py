"""Secrets of the store reach the code that needs them, on the worker, and reach nothing else."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from penstock import AskInquiry, DurableContext, Rule, Schedule, Trigger, action, later
from penstock.errors import ExecutionFailed, InvalidInput
from penstock.language.workflows import from_yaml
from penstock.operate import secrets
from penstock.operate.executions import described
from tests.flows.installation import Installation
from tests.penstock.operate.keys import KEY

PASSWORD = 'pass"word\\é of the shop'
SEEN: list[dict[str, Any]] = []


@action(pack="safe")
async def use(password: str, note: str = "") -> dict[str, str]:
    SEEN.append({"password": password, "note": note})
    logging.getLogger("safe").warning("logs in with %s", password)
    return {"said": f"with {password}", password: "as a key"}


@action(pack="safe")
async def break_(password: str) -> None:
    raise RuntimeError(f"{password} does not fit")


def log_in(password: str) -> dict[str, str]:
    return {"header": f"Basic {password}"}


def refuse(password: str) -> None:
    raise RuntimeError(f"{password} does not fit")


@action(pack="safe")
async def in_steps(ctx: DurableContext, password: str) -> Any:
    login = await ctx.step("log in", log_in, password)
    await ctx.sleep(0.2)
    SEEN.append({"given": login, "password": password})
    await ctx.step("refused", refuse, password)


@action(pack="safe")
async def through_children(ctx: DurableContext, password: str) -> None:
    await ctx.run(use, password=f"user:{password}", note="run")
    await ctx.map(use, [{"password": password, "note": "map"}])


@action(pack="safe")
async def waits_with(ctx: DurableContext, password: str, id: str) -> str:
    try:
        await ctx.wait_for("safe.called", when="event.payload.user == user", user=f"{password}!")
    except InvalidInput as error:
        await ctx.wait_for("safe.called", when="event.payload.user == id", id=UUID(id))
        return str(error)
    return "waited"


called = Trigger("safe.called")
rule = Rule(
    "safe.on_call",
    trigger=called,
    action=use,
    params={
        "password": "{{ payload.user }}:{{ secrets.password }}",
        "note": "{{ payload.note }}",
    },
)
nightly = Schedule(
    "safe.nightly", action=use, every=1, params={"password": "{{ secrets.password }}", "note": "nightly"}
)
flow = from_yaml("""
workflow: safe.flow
parameters: {password: {type: string}, note: {type: string}}
tasks:
  own: {action: safe.use, input: {password: "{{ secrets.password }}", note: own}}
  passed: {action: safe.use, input: {password: "{{ parameters.password }}", note: "{{ parameters.note }}"}, needs: [own]}
output: {password: "{{ parameters.password }}", own: "{{ tasks.own.result.said }}"}
""")


class Refused(Exception):
    """An error with a class that is named after a parameter."""


@action(pack="safe")
async def raises_its_secret(password: str) -> None:
    raise type(f"Refused {password}", (Refused,), {})("so it is")


@action(pack="safe")
async def raises_in_a_step(ctx: DurableContext, password: str) -> None:
    await ctx.step("log in", raises_in_step, password)


def raises_in_step(password: str) -> None:
    raise type(f"Refused {password}", (Refused,), {})("so it is")


@action(pack="safe")
async def names(ctx: DurableContext, password: str, kind: str) -> None:
    if kind == "step":
        await ctx.step(password, log_in, password)
    else:
        ctx.set(password, 1)
        await ctx.sleep(0)


@action(pack="safe")
async def waits_outside(password: str) -> Any:
    return later(f"job {password}")


@action(pack="safe")
async def asks_with_default(ctx: DurableContext, password: str) -> Any:
    return await ctx.ask("which?", timeout=0.1, default=f"{password}!")


@action(pack="safe")
async def inquires_with_default(password: str) -> Any:
    return AskInquiry("which?", timeout=0.1, default=[password])


ALL = (
    asks_with_default,
    inquires_with_default,
    raises_its_secret,
    raises_in_a_step,
    names,
    waits_outside,
    use,
    break_,
    in_steps,
    through_children,
    waits_with,
    called,
    rule,
    flow,
)


@pytest.fixture
async def house(database: str) -> AsyncIterator[Installation]:
    SEEN.clear()
    async with Installation(database, None, secrets_key=KEY) as house:
        await house.start(*ALL)
        await secrets.put(house.session, "public", "password", PASSWORD, by="ada")
        yield house


async def told(house: Installation) -> str:
    """All that the database knows, and what people are shown."""
    tables = (
        "execution",
        "payload",
        "result",
        "attempt",
        "log_line",
        "history",
        "enforcement",
        "workflow_variable",
    )
    rows: list[Any] = []
    for table in tables:
        rows += await house.rows(f"select row_to_json(t)::text from {table} t")
    ids = await house.rows("select id from execution")
    descriptions = [await described(house.session, row[0]) for row in ids]
    assert "$secrets" not in str(descriptions)
    return "\n".join(str(row[0]) for row in rows) + str(descriptions)


def is_in(text: str) -> bool:
    return any(secret in text for secret in (PASSWORD, PASSWORD.replace("\\", "\\\\"), "of the shop"))


async def test_an_event_cannot_name_a_secret_and_its_rule_can(house: Installation) -> None:
    payload = {"user": "{{ secrets.password }}", "note": "{{ secrets.password }}"}
    await house.client.publish("safe.called", payload)
    await house.until("select 1 from execution where finished_at is not null")
    [params] = SEEN
    assert params == {"password": "{{ secrets.password }}:" + PASSWORD, "note": "{{ secrets.password }}"}
    assert not is_in(await told(house))


async def test_a_workflow_gives_own_secrets_and_passes_on_given_ones(house: Installation) -> None:
    note = "{{ secrets.password }}"
    id = await house.client.start("safe.flow", {"note": note}, secrets={"password": "password"})
    result = await house.client.result(id, timeout=20)
    assert result == {"password": "{{ secrets.password }}", "own": "with ***"}
    assert [{"password": PASSWORD, "note": "own"}, {"password": PASSWORD, "note": note}] == SEEN
    again = await house.client.rerun(id, by="ada")
    await house.client.result(again, timeout=20)
    assert SEEN[2:] == SEEN[:2]
    changed = await house.client.rerun(id, params={"note": "other"}, from_task="passed", by="ada")
    await house.client.result(changed, timeout=20)
    assert SEEN[4:] == [{"password": PASSWORD, "note": "other"}]
    same = await house.client.rerun(id, params={"password": note, "note": "as shown"}, by="ada")
    await house.client.result(same, timeout=20)
    assert SEEN[6] == {"password": PASSWORD, "note": "as shown"}  # the text of the reference is the reference
    plain = await house.client.rerun(id, params={"password": f"{note}!", "note": note}, by="ada")
    await house.client.result(plain, timeout=20)
    assert SEEN[8] == {"password": f"{note}!", "note": note}
    assert not is_in(await told(house))


async def test_it_stands_where_it_was_written_however_deep(house: Installation) -> None:
    deep = from_yaml("""
workflow: safe.deep
tasks:
  only: {action: safe.keep, input: {deep: {list: [a, "{{ secrets.password }}"]}}}
""")

    @action(pack="safe")
    async def keep(deep: dict[str, Any]) -> None:
        SEEN.append(deep)

    await house.apply(keep, deep)
    await house.worker(keep)
    await house.client.result(await house.client.start("safe.deep"), timeout=20)
    assert SEEN == [{"list": ["a", PASSWORD]}]


async def test_a_schedule_gives_one(house: Installation) -> None:
    await house.apply(nightly)
    await house.until("select 1 from execution where finished_at is not null")
    assert SEEN[0] == {"password": PASSWORD, "note": "nightly"}


async def test_a_failure_shows_none(house: Installation) -> None:
    id = await house.client.start("safe.break_", {}, secrets={"password": "password"})
    with pytest.raises(ExecutionFailed, match=r"\*\*\* does not fit"):
        await house.client.result(id, timeout=20)
    assert not is_in(await told(house))


async def test_the_steps_of_a_durable_function_show_none(house: Installation) -> None:
    id = await house.client.start("safe.in_steps", {}, secrets={"password": "password"})
    with pytest.raises(ExecutionFailed, match=r"\*\*\* does not fit"):
        await house.client.result(id, timeout=20)
    assert SEEN == [{"given": {"header": "Basic ***"}, "password": PASSWORD}]
    assert not is_in(await told(house))
    rows = await house.rows(
        "select coalesce(result::text, '') || coalesce(error::text, '') as said from step"
    )
    assert len(rows) == 3
    assert not is_in(str([row["said"] for row in rows]))


@pytest.mark.parametrize("ref", ["safe.raises_its_secret", "safe.raises_in_a_step"])
async def test_type_and_cause_of_an_error_show_none(house: Installation, ref: str) -> None:
    id = await house.client.start(ref, {}, secrets={"password": "password"})
    with pytest.raises(ExecutionFailed, match=r"Refused \*\*\*"):
        await house.client.result(id, timeout=20)
    assert not is_in(await told(house))


@pytest.mark.parametrize("kind", ["step", "state"])
async def test_name_with_a_secret_is_refused_before_it_is_stored(house: Installation, kind: str) -> None:
    id = await house.client.start("safe.names", {"kind": kind}, secrets={"password": "password"})
    with pytest.raises(ExecutionFailed, match=f"the name of a {kind} contains a stored secret"):
        await house.client.result(id, timeout=20)
    assert not is_in(await told(house) + str(await house.rows("select name from step")))


@pytest.mark.parametrize("ref", ["safe.asks_with_default", "safe.inquires_with_default"])
async def test_default_answer_with_a_secret_is_refused(house: Installation, ref: str) -> None:
    id = await house.client.start(ref, {}, secrets={"password": "password"})
    with pytest.raises(ExecutionFailed, match="the default answer of a question"):
        await house.client.result(id, timeout=20)
    assert not is_in(await told(house))


async def test_id_of_later_with_a_secret_is_refused(house: Installation) -> None:
    id = await house.client.start("safe.waits_outside", {}, secrets={"password": "password"})
    with pytest.raises(ExecutionFailed, match="the id of `later` contains a stored secret"):
        await house.client.result(id, timeout=20)
    assert not is_in(await told(house))


async def test_a_secret_of_a_durable_function_stays_a_reference(house: Installation) -> None:
    id = await house.client.start("safe.through_children", {}, secrets={"password": "password"})
    await house.client.result(id, timeout=20)
    assert [
        {"password": f"user:{PASSWORD}", "note": "run"},
        {"password": PASSWORD, "note": "map"},
    ] == SEEN
    assert not is_in(await told(house))


async def test_wait_for_an_event_keeps_no_secret(house: Installation) -> None:
    user = "0190d5e0-0000-7000-8000-000000000000"
    id = await house.client.start("safe.waits_with", {"id": user}, secrets={"password": "password"})
    await house.until("select 1 from event_wait")
    await house.client.publish("safe.called", {"user": user, "note": "n"})
    assert "the condition of the wait contains a stored secret" in await house.client.result(id, timeout=20)
    assert not is_in(await told(house))


@pytest.mark.parametrize("tenant", ["public", "acme"])
async def test_a_missing_secret_is_named_and_each_tenant_has_its_own(
    house: Installation, tenant: str
) -> None:
    name = "password" if tenant == "acme" else "absent"
    id = await house.client.start("safe.use", {}, secrets={"password": name}, tenant=tenant)
    with pytest.raises(ExecutionFailed, match=f"tenant {tenant} has no secret {name}"):
        await house.client.result(id, timeout=20)
    assert SEEN == []


async def test_secret_references_cannot_be_given_by_another_way(house: Installation) -> None:
    forged = {"password": "x", "$secrets": [[["password"], [{"secret": "password"}]]]}
    with pytest.raises(InvalidInput):
        await house.client.start("safe.use", forged)
    with pytest.raises(InvalidInput, match="has both a value and a secret"):
        await house.client.start("safe.use", {"password": "x"}, secrets={"password": "password"})


async def test_a_worker_without_the_key_says_so(database: str) -> None:
    async with Installation(database, None) as house:
        await house.start(use)
        id = await house.client.start("safe.use", {}, secrets={"password": "password"})
        with pytest.raises(ExecutionFailed, match="no master key"):
            await house.client.result(id, timeout=20)
