"""The words of `penstock lint`: which definition is wrong, where, and what was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.language.terms.options import nearest
from tests.penstock.cli.commands import penstock

FAULTY = """
import time
from penstock import DurableContext, Pack, Rule, Schedule, action, workflow

pack = Pack("bad")

@action
async def keep(n: int) -> int: return n

@workflow
def flow(n: int):
    keep(m=n)

Rule("late", trigger="bad.placed", when="payload.n >", action=keep)
Rule("filter", trigger="bad.placed", action=keep, params={"n": "{{ payload.n | foo }}"})
Schedule("bad.daily", action=keep, cron="61 2 * * *")
Rule("other", trigger="elsewhere.posted", action="bad.zzz")

@action
async def durable(ctx: DurableContext) -> None:
    time.sleep(3)
"""


async def test_lint_names_definitions_and_tasks_in_the_order_of_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(FAULTY)
    linted = await penstock("lint", "bad.py", "--json")
    places = [(fault["file"], fault["line"]) for fault in linted.documents]
    assert places == sorted(places)
    assert {file for file, _ in places} == {"bad.py"}
    messages = "\n".join(fault["message"] for fault in linted.documents)
    assert "workflow bad.flow: tasks.keep.input.m: `bad.keep` has no parameter `m`" in messages
    assert "rule late: when: " in messages
    assert "schedule bad.daily: cron: " in messages
    hints = "\n".join(str(fault["hint"]) for fault in linted.documents)
    assert "to_date, to_datetime" in hints


async def test_lint_of_one_file_names_the_option_for_references(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("alerts.py").write_text(
        "from penstock import Rule\nRule('al.r', trigger='shop.posted', action='shop.charge')\n"
    )
    linted = await penstock("lint", "alerts.py")
    assert linted.code == 1
    assert "lint these files together, or use --alone" in " ".join(linted.out.split())
    assert (await penstock("lint", "alerts.py", "--alone")).code == 0


CONVERTING = """
from penstock import Pack, action, workflow

pack = Pack("bad")

@action
async def price(n: int) -> float: return n / 3

@workflow
def whole(n: int):
    return price(n=int(price(n=n).set(name="first")))

@workflow
def shown(n: int):
    return {"text": f"{price(n=n):.2f}"}

@workflow
def noted(n: int):
    return {"text": str(price(n=n)), "longer": "it costs " + str(n), "formatted": f"{n}"}
"""


async def test_lint_names_conversions_of_references(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.py").write_text(CONVERTING)
    linted = await penstock("lint", "bad.py", "--json")
    assert [(fault["line"], fault["message"], fault["is_warning"]) for fault in linted.documents] == [
        (11, "int(...) of {{ tasks.first.result }} is only known when the workflow runs", False),
        (
            15,
            "{{ tasks.price.result }} cannot have the format `:.2f`, since its value is only known when the workflow runs",
            False,
        ),
        (
            19,
            "`str(...)` of a reference is the value itself, of any type: the text is only known when the workflow runs",
            True,
        ),
    ]
    assert linted.code == 1


async def test_warning_of_a_conversion_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mild.py").write_text(
        "from penstock import task, workflow\n"
        "@workflow(pack='mild')\n"
        "def text(n: int):\n"
        "    return task('shop.charge', {'order': str(n)})\n"
    )
    linted = await penstock("lint", "mild.py", "--alone")
    assert linted.code == 0
    assert "warning: mild.py:4: `str(...)` of a reference" in " ".join(linted.out.split())


async def test_lint_names_durations_in_the_code_of_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("slow.py").write_text(
        "from penstock import DurableContext, action\n"
        "@action(pack='slow')\n"
        "async def nap(ctx: DurableContext) -> None:\n"
        "    await ctx.sleep('1 day')\n"
    )
    linted = await penstock("lint", "slow.py", "--json")
    [fault] = linted.documents
    assert (linted.code, fault["line"]) == (1, 4)
    assert fault["message"] == "the duration of `ctx.sleep` is not a duration: '1 day'"
    assert '"1h30m"' in fault["hint"]


def test_nearest_ref_has_a_similar_name_and_not_just_the_same_pack() -> None:
    refs = ["bad.e", "bad.charge", "shop.charge"]
    assert nearest("bad.zzz", refs) is None
    assert nearest("bad.chrge", refs) == "bad.charge"
    assert nearest("shp.charge", refs) in ("shop.charge", "bad.charge")
