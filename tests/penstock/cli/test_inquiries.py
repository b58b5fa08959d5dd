"""The commands about inquiries where many are open."""

from __future__ import annotations

from penstock import AskInquiry, action
from tests.flows import waits
from tests.flows.installation import Installation
from tests.penstock.cli.commands import penstock


@action(pack="many")
async def ask(n: int) -> AskInquiry:
    return AskInquiry(f"Question {n}?", schema={"type": "string"})


async def test_oldest_of_many_questions_is_listed_and_answered(house: Installation) -> None:
    await house.start(ask)
    first = await house.client.start("many.ask", {"n": 0})
    await house.until("select 1 from inquiry")
    await house.client.start_many("many.ask", [{"n": n} for n in range(1, 101)])
    await house.until("select 1 from inquiry having count(*) = 101")
    listed = await penstock("inquiries", "--json")
    assert len(listed.documents) == 100
    assert "There may be more: penstock inquiries --limit 1000" in listed.err
    assert str(first) not in listed.out
    whole = await penstock("inquiries", "--limit", "1000", "--json")
    assert [row["execution_id"] for row in whole.documents][-1] == str(first)
    assert whole.err == ""
    answered = await penstock(
        "answer", str(first), "5", "--json"
    )  # a text, since the question takes only text
    assert answered.documents[0]["answered"] == "5"
    assert await house.client.result(first, timeout=20) == "5"


async def test_question_of_paused_workflow_names_the_pause_and_then_its_responder(
    house: Installation,
) -> None:
    await house.start(*waits.ALL)
    run = await house.client.start("wf.asking", {"who": "Bob"})
    task = await waits.waiting(house, run)
    running = await penstock("inquiries")
    assert "paused" not in running.out + running.err
    await house.client.command(run, "pause", by="ada")
    await house.until("select 1 from workflow_command where obeyed_at is not null")
    listed = await penstock("inquiries")
    assert "open, paused" in listed.out
    assert "The tasks after the question start when the workflow is resumed" in " ".join(listed.err.split())
    assert (await penstock("inquiries", "--json")).documents[0]["run"]["paused"] is True
    answered = await penstock("answer", str(task), "true", "--by", "ada")
    assert "The workflow is paused. The tasks after the question start when it is resumed." in answered.out
    await house.until("select 1 from execution where id = $1 and status = 'completed'", task)
    [row] = (await penstock("executions", "--json")).documents
    assert row["waits_for"]["text"] == "is paused"
    assert row["paused"] is True
    assert "running, paused" in (await penstock("executions")).out
    shown = await penstock("show", str(run))
    assert "running, paused" in shown.out
    assert (await penstock("show", str(run), "--json")).document["paused"] is True
    task_rows = (await penstock("executions", "--parent", str(run), "--json")).documents
    assert [row["paused"] for row in task_rows] == [False]
    every = await penstock("inquiries", "--all")
    assert "answered by" in every.out
    assert "ada" in every.out.split("answered by")[1]
    shown = (await penstock("show", str(run), "--json")).documents[0]["told"]
    assert [(sent["kind"], sent["task"], sent["by"]) for sent in shown] == [
        ("pause", None, "ada"),
        ("answer", "ask", "ada"),
    ]
    assert "answer" in (await penstock("show", str(run))).out
