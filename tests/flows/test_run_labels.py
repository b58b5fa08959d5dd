"""Labels and titles of executions in a whole installation: from rules, actions and parameters, and their bounds."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from penstock import Rule, Secret, Trigger, action, current, workflow
from penstock.errors import DefinitionError, InvalidInput
from penstock.language.terms.run_labels import MAX_LABELS, MAX_VALUE
from penstock.operate import titles
from penstock.operate.executions import described
from penstock.store.executions import archive
from penstock.store.executions.execution_list import ExecutionFilter
from tests.flows.installation import Installation

invoice = Trigger("found.invoice", schema={"customer": "string", "paid": "boolean"})


@pytest.fixture
def transport() -> str:
    return "postgres"


@action(
    pack="found",
    title="dunning of {{ parameters.customer }} with {{ parameters.password }}",
    searchable=["customer"],
)
async def dun(customer: str, password: Annotated[str, Secret] = "hidden") -> None: ...


@action(pack="found", run_labels={"team": "billing"})
async def pays() -> None: ...


@workflow(pack="found")
def bills(customer: str):  # type: ignore[no-untyped-def]
    dun(customer=customer)
    pays()


@action(pack="found")
async def starts_dunning() -> str:
    run = current()
    await run.start(dun, {"customer": "acme"}, labels={"source": "start"})
    await run.run(dun, {"customer": "acme"}, labels={"source": "run"}, timeout=30)
    try:
        await run.start(dun, {"customer": "acme"}, labels={"": "wrong"})
    except InvalidInput as refusal:
        return str(refusal)
    return "accepted"


@action(pack="found", executor="thread")
def starts_dunning_in_thread() -> None:
    current().sync.start(dun, {"customer": "acme"}, labels={"source": "thread"})
    current().sync.run(dun, {"customer": "acme"}, labels={"source": "thread-run"}, timeout=30)


@action(pack="found", executor="process")
def starts_dunning_in_process() -> None:
    current().sync.start(dun, {"customer": "acme"}, labels={"source": "process"})


PARAMS = {"customer": "{{ payload.customer }}", "password": "open sesame"}
LABELS = {"customer": "{{ payload.customer | upper }}", "paid": "{{ payload.paid }}", "source": "rule"}


async def labels_of(house: Installation, criteria: ExecutionFilter) -> list[dict[str, Any]]:
    documents = [
        await described(house.session, row.id) for row in await titles.listed(house.session, criteria)
    ]
    return [document for document in documents if document is not None]


async def test_rule_labels_its_executions(house: Installation) -> None:
    rule = Rule("found.dun", trigger=invoice, action=dun, params=PARAMS, labels=LABELS)
    await house.start(dun, invoice, rule)
    await house.client.publish("found.invoice", {"customer": "acme", "paid": False})
    await house.until("select 1 from execution where status = 'completed'")
    for _ in range(2):
        [document] = await labels_of(house, ExecutionFilter(labels={"source": "rule", "paid": "false"}))
        assert document["labels"] == {"customer": "ACME", "paid": "false", "source": "rule"}
        assert document["title"] == "dunning of acme with ***"
        assert await labels_of(house, ExecutionFilter(labels={"customer": "acme"})) == []
        await archive.archive_finished(house.session, 0, 100, 0)
    assert await house.rows("select from label") == []


async def test_rerun_labels_follow_its_parameters(house: Installation) -> None:
    rule = Rule("found.dun", trigger=invoice, action=dun, params=PARAMS, labels=LABELS)
    await house.start(dun, invoice, rule)
    await house.client.publish("found.invoice", {"customer": "acme", "paid": False})
    [old] = await house.until("select id from execution where status = 'completed'")
    new = await house.client.rerun(old["id"], params={"customer": "bolt"}, by="test")
    document = await described(house.session, new)
    assert document is not None
    assert document["labels"] == {"customer": "bolt", "paid": "false", "source": "rule"}
    await house.until("select 1 from execution having count(*) filter (where status = 'completed') = 2")
    await archive.archive_finished(house.session, 0, 100, 0)
    again = await house.client.rerun(new, labels={"paid": "true", "team": "billing"}, by="test")
    document = await described(house.session, again)
    assert document is not None
    assert document["labels"] == {"customer": "bolt", "paid": "true", "source": "rule", "team": "billing"}
    for labels in ({"customer": "other"}, {"": "wrong"}, {f"l{n}": "x" for n in range(MAX_LABELS)}):
        with pytest.raises(InvalidInput):
            await house.client.rerun(new, labels=labels, by="test")


async def test_rerun_of_a_task_has_the_labels_of_its_workflow(house: Installation) -> None:
    await house.start(dun, pays, bills)
    labels = {"customer": "of the workflow", "team": "of the workflow", "source": "start"}
    run = await house.client.start("found.bills", {"customer": "acme"}, labels=labels)
    await house.client.result(run, timeout=20)
    tasks = await house.rows("select id from execution where parent is not null order by task")
    expected = [{**labels, "customer": "acme"}, {**labels, "team": "billing"}]
    for _ in range(2):
        for task, task_labels in zip(tasks, expected, strict=True):
            described_task = await described(house.session, task["id"])
            assert described_task is not None
            assert described_task["labels"] == task_labels
            new = await house.client.rerun(task["id"], labels={"again": "yes"}, by="test")
            described_run = await described(house.session, new)
            assert described_run is not None
            assert described_run["labels"] == {**task_labels, "again": "yes"}
            await house.client.result(new, timeout=20)
        await archive.archive_finished(house.session, 0, 100, 0)


async def test_start_within_an_action_labels_its_execution(house: Installation) -> None:
    await house.start(dun, starts_dunning, starts_dunning_in_thread, starts_dunning_in_process)
    refusal = await house.client.run("found.starts_dunning", timeout=30)
    assert refusal.startswith("labels ")
    await house.client.run("found.starts_dunning_in_thread", timeout=30)
    await house.client.run("found.starts_dunning_in_process", timeout=30)
    for source in ("start", "run", "thread", "thread-run", "process"):
        [document] = await labels_of(house, ExecutionFilter(labels={"source": source}))
        assert document["labels"] == {"customer": "acme", "source": source}


async def test_rule_with_a_label_too_long_fails_on_the_event(house: Installation) -> None:
    rule = Rule(
        "found.long", trigger=invoice, action=dun, params=PARAMS, labels={"name": "{{ payload.customer }}"}
    )
    await house.start(dun, invoice, rule)
    await house.client.publish("found.invoice", {"customer": "x" * (MAX_VALUE + 1), "paid": True})
    [row] = await house.until("select error from enforcement where error is not null")
    assert str(row["error"]).startswith("InvalidInput: labels name is not a text of 1 to 200")


async def test_searchable_parameter_too_long_gets_no_label(house: Installation) -> None:
    await house.apply(dun)
    id = await house.client.start(dun, {"customer": "x" * (MAX_VALUE + 1), "password": "open sesame"})
    document = await described(house.session, id)
    assert document is not None
    assert document["labels"] == {}
    assert len(document["title"]) == titles.MAX_TITLE


async def test_title_has_the_default_of_a_parameter_that_was_left_out(house: Installation) -> None:
    @action(pack="found", title="{{ parameters.kind }} of {{ parameters.password }}", searchable=["kind"])
    async def remind(kind: str = "reminder", password: Annotated[str, Secret] = "hidden") -> None: ...

    await house.apply(remind)
    id = await house.client.start(remind, {})
    [row] = await titles.listed(house.session, ExecutionFilter())
    document = await described(house.session, id)
    assert document is not None
    assert (row.title, document["title"]) == ("reminder of ***", "reminder of ***")
    assert (document["params"], document["labels"]) == ({}, {})


@pytest.mark.parametrize(
    "labels",
    [
        {"Customer": "a"}, {"": "a"}, {"x" * 64: "a"}, {"a b": "c"}, {"customer": ""}, {"customer": "x" * (MAX_VALUE + 1)},
        {"customer": "a\nb"}, {f"key{n}": "v" for n in range(MAX_LABELS + 1)},
    ],
)  # fmt: skip
async def test_start_with_a_bad_label_is_refused(house: Installation, labels: dict[str, str]) -> None:
    await house.apply(dun)
    with pytest.raises(InvalidInput, match="labels") as refused:
        await house.client.start(dun, {"customer": "a"}, labels=labels)
    assert refused.value.hint
    assert await house.rows("select from execution") == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"searchable": ["password"]}, "secret"),
        ({"searchable": ["nothing"]}, "names no parameter"),
        ({"searchable": ["rows"]}, "not a text, number or boolean"),
        ({"title": "{{ payload.x }}"}, "reads payload"),
        ({"title": "{{ parameters. }}"}, "title"),
        ({"run_labels": {"A": "b"}}, "lowercase"),
    ],
)
def test_definition_with_a_bad_option_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(DefinitionError, match=reason):

        @action(pack="found", **options)
        async def refused(password: Annotated[str, Secret], rows: list[int]) -> None: ...
