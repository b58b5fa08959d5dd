"""The commands about inquiries where many are open."""

from __future__ import annotations

from penstock import AskInquiry, action
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
