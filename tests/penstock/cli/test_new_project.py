"""The first commands of a newcomer: `penstock new`, `lint` and `test`, with no server anywhere."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator
from sqlalchemy import make_url

from tests.penstock.cli.commands import penstock

FAULTY = """
from penstock import Rule, action, workflow

@action(pack="shop", retries=3)
def charge(order: int): ...

@action(pack="shop", timeout="banana")
def ship(order: int): ...

@workflow(pack="shop")
def sell(order: int):
    return charge(order=order)

Rule("shop.a", trigger="shop.paid", when="payload.x >", action="shop.ship")
undefined_name
print(sell)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    return tmp_path


async def its_tests_pass(project: Path) -> None:
    tested = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=project,
        capture_output=True,
        text=True,
    )
    assert "3 passed" in tested.stdout, tested.stdout + tested.stderr


async def test_a_new_project_is_sound_and_its_tests_pass(here: Path) -> None:
    said = await penstock("new", "newcomer")
    assert said.code == 0, said
    assert "penstock dev -m newcomer.py" in said.out
    linted = await penstock("lint", "newcomer")
    assert linted.code == 0, linted
    await its_tests_pass(here / "newcomer")


async def test_new_project_keeps_the_master_key_out_of_git(here: Path) -> None:
    await penstock("new", "newcomer")
    ignored = (here / "newcomer/.gitignore").read_text().splitlines()
    assert {".penstock/", "secrets.key"} <= set(ignored)


async def test_a_new_project_in_yaml_is_sound_and_its_editor_knows_the_schema(here: Path) -> None:
    said = await penstock("new", "yaml_shop", "--yaml")
    assert said.code == 0, said
    assert "penstock dev -m yaml_shop" in said.out
    linted = await penstock("lint", "yaml_shop/yaml_shop")
    assert linted.code == 0, linted
    pack = here / "yaml_shop/yaml_shop/pack.yaml"
    head = "# yaml-language-server: $schema="
    first = pack.read_text().splitlines()[0]
    assert first.startswith(head)
    schema = json.loads((pack.parent / first.removeprefix(head)).read_text())
    Draft202012Validator(schema).validate(yaml.safe_load(pack.read_text()))
    await its_tests_pass(here / "yaml_shop")


async def test_the_commands_of_the_readme_work_as_it_says(here: Path) -> None:
    await penstock("new", "readme_shop", "--into", here / "there")
    readme = (here / "there/README.md").read_text()
    assert "penstock test readme_shop.fulfil_orders -m readme_shop.py id=7 amount=25" in readme
    module = here / "there/readme_shop.py"
    tried = await penstock(
        *("test", "readme_shop.fulfil_orders", "-m", module, "id=7", "amount=25", 'goods=["pen"]', "--json")
    )
    assert tried.document == {
        "rule": "readme_shop.fulfil_orders",
        "matched": True,
        "params": {"order": 7, "amount": 25, "items": ["pen"]},
        "error": None,
    }
    free = await penstock("test", "readme_shop.fulfil_orders", "-m", module, "id=7", "amount=0")
    assert (free.code, "does not match" in free.out) == (0, True)
    refused = await penstock("test", "readme_shop.fulfil_orders", "-m", module, "amount=0")
    assert (refused.code, "id is missing" in refused.err) == (1, True)
    unknown = await penstock("test", "readme_shop.fulfil", "-m", module)
    assert (unknown.code, "fulfil_orders" in unknown.err) == (1, True)


async def test_its_servers_are_those_that_its_readme_names(here: Path) -> None:
    await penstock("new", "served_shop")
    compose = yaml.safe_load((here / "served_shop/compose.yaml").read_text())
    readme = (here / "served_shop/README.md").read_text()
    database, broker = (make_url(url) for url in re.findall(r"=(\w+://\S+)", readme))
    postgres, rabbitmq = (compose["services"][name] for name in ("postgres", "rabbitmq"))
    kept = postgres["environment"]
    assert (database.username, database.password, database.database) == (
        *(kept["POSTGRES_USER"], kept["POSTGRES_PASSWORD"], kept["POSTGRES_DB"]),
    )
    kept = rabbitmq["environment"]
    assert (broker.username, broker.password, broker.database) == (
        *(kept["RABBITMQ_DEFAULT_USER"], kept["RABBITMQ_DEFAULT_PASS"], kept["RABBITMQ_DEFAULT_VHOST"]),
    )
    assert postgres["ports"] == [f"127.0.0.1:{database.port}:5432"]
    assert rabbitmq["ports"] == [f"127.0.0.1:{broker.port}:5672"]
    assert set(compose["volumes"]) == {"postgres", "rabbitmq"}


async def test_an_expression_is_tried_on_a_payload() -> None:
    assert (await penstock("test", "payload.amount * 2", "amount=4", "--json")).document == {"value": 8}
    assert (await penstock("test", "order {{ payload.id }}", "id=4", "--json")).document == {
        "value": "order 4"
    }
    wrong = await penstock("test", "payload.amont", "amount=4")
    assert (wrong.code, "amont" in wrong.err) == (1, True)


@pytest.mark.parametrize("name", ["Shop", "json", "class", "two words", "", "penstock"])
async def test_a_name_that_cannot_be_one_is_refused(here: Path, name: str) -> None:
    said = await penstock("new", name)
    assert said.code == 1
    assert "hint:" in said.err
    assert list(here.iterdir()) == []


async def test_a_folder_with_something_in_it_is_left_alone(here: Path) -> None:
    (here / "kept").mkdir()
    (here / "kept/file").write_text("mine")
    said = await penstock("new", "kept")
    assert (said.code, "not empty" in said.err) == (1, True)
    assert [path.name for path in (here / "kept").iterdir()] == ["file"]


async def test_one_look_finds_all_faults_of_a_python_file(here: Path) -> None:
    (here / "faulty.py").write_text(FAULTY)
    said = await penstock("lint", "faulty.py", "--json")
    assert said.code == 1
    found = [(fault["line"], fault["message"].split(":")[0]) for fault in said.documents]
    assert [line for line, _ in found] == [4, 7, 14, 15]
    assert [what for _, what in found][:2] == ["action shop.charge", "action shop.ship"]
    people = await penstock("lint", "faulty.py")
    assert "faulty.py:4: action shop.charge: retries: unknown option" in people.out
    assert "Write retry={'max_attempts': 3}" in people.out
    assert "4 faults" in people.out


async def test_names_that_nothing_has_are_faults_unless_they_may_be_elsewhere(here: Path) -> None:
    (here / "rules.py").write_text(
        "from penstock import Rule\nRule('shop.a', trigger='shop.paid', action='shop.ship')\n"
    )
    said = await penstock("lint", "rules.py")
    assert (said.code, "unknown trigger 'shop.paid'" in said.out) == (1, True)
    assert (await penstock("lint", "rules.py", "--alone")).code == 0


async def test_field_that_an_open_trigger_does_not_name_is_a_warning(here: Path) -> None:
    trigger = "Trigger('shop.paid', schema={'amount': 'number', 'buyer': {'type': 'object', 'properties': {'mail': {}}}%s})"
    rule = "Rule('shop.a', trigger='shop.paid', action='shop.ship', when='payload.%s > 3')"
    text = f"from penstock import Rule, Trigger\n{trigger}\n{rule}\n"
    for read, meant in (
        ("amout", "'amount'"),
        ("buyer.mial", None),
        ("buyer.mails", "'mail'"),
        ("note", None),
    ):
        (here / "typos.py").write_text(text % ("", read))
        said = await penstock("lint", "typos.py", "--alone")
        warned = "typos.py:3: rule shop.a: trigger shop.paid names no `payload." + read
        assert (said.code, warned in said.out) == (0, True), said
        assert ("Did you mean" in said.out) == (meant is not None), said
        assert meant is None or f"Did you mean {meant}?" in said.out


@pytest.mark.parametrize(
    ("path", "warning"),
    [
        ("label.customer", "no action has the parameter `label.customer`|Did you mean 'labels.customer'?"),
        ("lables.region", "no action has the parameter `lables.region`|Did you mean 'labels.region'?"),
        ("labels.custmer", "no definition gives the label 'custmer'|Did you mean 'labels.customer'?"),
        ("labels.regoin", "no definition gives the label 'regoin'|Did you mean 'labels.region'?"),
        ("labels.teams", "no definition gives the label 'teams'|Did you mean 'labels.team'?"),
        ("labels.vip", "`labels.vip` is the label 'vip', and no part of the parameter `labels`|"),
        ("labels.customer", None),
        ("labels.region", None),
        ("customer", None),
        ("ladder.x", None),
    ],
)
async def test_likely_typo_in_a_limit_by_a_label_is_a_warning(
    here: Path, path: str, warning: str | None
) -> None:
    (here / "limits.py").write_text(
        "from penstock import Limit, Rule, Trigger, action\n"
        "@action(pack='shop', run_labels={'team': 'a'}, searchable=['customer'])\n"
        "def charge(customer: str, **more): ...\n"
        "@action(pack='shop')\n"
        "def refund(labels: dict): ...\n"
        "Trigger('shop.paid', schema={'region': 'string'})\n"
        "Rule('shop.a', trigger='shop.paid', action=charge, params={'customer': 'x'},"
        " labels={'region': '{{ payload.region }}'})\n"
        f"Limit(1, ref='shop.door', scope='shop', by='{path}')\n"
    )
    said = await penstock("lint", "limits.py")
    assert said.code == 0, said
    for part in (warning or "").split("|"):
        assert part in said.out
    assert ("limits.py:8: limit shop.door: by: " in said.out) == (warning is not None), said


@pytest.mark.parametrize(
    ("path", "warning"),
    [
        ("labels.custmer", "no definition gives the label 'custmer'|Did you mean 'labels.customer'?"),
        ("labels.regoin", "Did you mean 'labels.region'? A start may still give this label."),
        ("labels.temas", "Did you mean 'labels.teams'?"),
        ("labels.customer", None),
        ("labels.region", None),
        ("labels.vip", None),
    ],
)
async def test_likely_typo_in_a_batch_by_a_label_is_a_warning(
    here: Path, path: str, warning: str | None
) -> None:
    (here / "batches.py").write_text(
        "from dataclasses import dataclass\n"
        "from penstock import Batch, Item, Rule, Trigger, action, workflow\n"
        "@dataclass\nclass Order:\n    customer: str\n"
        f"@action(pack='shop', batch=Batch(9, by='{path}'), searchable=['customer'])\n"
        "def charge(items: list[Item[Order]]) -> list[int]: ...\n"
        "@workflow(pack='shop', run_labels={'teams': 'a'})\n"
        "def charge_all(customer: str):\n    return charge(customer=customer)\n"
        "Trigger('shop.paid', schema={'region': 'string'})\n"
        "Rule('shop.a', trigger='shop.paid', action=charge, params={'customer': 'x'},"
        " labels={'region': '{{ payload.region }}'})\n"
    )
    said = await penstock("lint", "batches.py")
    assert said.code == 0, said
    for part in (warning or "").split("|"):
        assert part in said.out
    assert ("action shop.charge: batch: by: " in said.out) == (warning is not None), said


@pytest.mark.parametrize(
    ("condition", "warns"),
    [
        ("any_of(amount <= 2000, yes == True)", True),
        ("all_of(amount > 0, any_of(amount <= 2000, yes == True))", True),
        ("'{{ parameters.amount <= 2000 or tasks.ask.result }}'", True),
        ("all_of(success(checked), any_of(amount <= 2000, yes == True))", False),
        ("yes == True", False),
        ("any_of(yes == True, yes == 'later')", False),
        ("any_of(amount <= 2000, checked == 1)", False),
    ],
)
async def test_task_that_is_skipped_with_its_question_is_a_warning(
    here: Path, condition: str, warns: bool
) -> None:
    """The first condition was written by a reader of the page about approvals: no small invoice was ever booked."""
    (here / "books.py").write_text(
        "from penstock import Pack, action, all_of, any_of, inquiry, success, workflow\n"
        "pack = Pack('books')\n"
        "@action\nasync def check(amount: float) -> int: ...\n"
        "@action\nasync def book(amount: float) -> int: ...\n"
        "@workflow\ndef process(amount: float):\n"
        "    checked = check(amount=amount)\n"
        "    yes = inquiry('Book?', schema={'type': 'boolean'}, name='ask').after(checked).when(amount > 2000)\n"
        f"    return book(amount=amount).after(checked, yes).when({condition})\n"
    )
    said = await penstock("lint", "books.py")
    assert said.code == 0, said
    warning = (
        "workflow books.process: task book is skipped whenever ask is skipped, also if its condition is true"
    )
    assert (warning in said.out) == warns, said
    assert ("all_of(success(...), any_of(...))" in said.out) == warns


async def test_packs_and_unknown_keys_are_linted_too(here: Path) -> None:
    (here / "stock").mkdir()
    (here / "stock/pack.yaml").write_text(
        "name: stock\ntriggers:\n  a: {shcema: {}}\nrules:\n  r: {trigger: a, wen: x, action: b}\n"
    )
    said = await penstock("lint", "stock", "--json")
    assert [(fault["file"], fault["line"]) for fault in said.documents] == [
        ("stock/pack.yaml", 3),
        ("stock/pack.yaml", 5),
    ]
    assert (await penstock("lint", "nothing.py")).code == 1
