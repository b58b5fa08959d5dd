"""The module that `penstock types` writes: what type checkers and Python make of it."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel

import penstock
from penstock import Secret, action
from penstock.client.generated_types.module import digest_of, module_of
from penstock.language.definitions.action import Action
from penstock.language.workflows import Workflow, from_yaml
from penstock.operate.masking import Masking


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Item(BaseModel):
    sku: str
    count: int = 1
    colour: Colour = Colour.RED


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


@dataclass
class Address:
    street: str
    int: str = "a field named like a type"
    floor: float = 0


@action(pack="shop")
async def charge(
    order: int,
    items: list[Item],
    key: Annotated[str, Secret],
    amount: float = 1.0,
    mode: Literal["fast", 'it\'s "slow"'] = "fast",
    note: str | None = None,
    pin: Annotated[str, Secret] = "1234",
    sizes: dict[str, int] | None = None,
    tags: tuple[str, ...] = ("new",),
    to: Address | None = None,
    when: datetime | None = None,
) -> Item:
    '''Charge """a card""" \\.

    At once.'''
    return items[0]


@action(pack="list")
async def grown(tree: Tree) -> list[Tree]:
    return [tree]


@action(ref="typed.dict")
async def anything(x, **more):  # type: ignore[no-untyped-def]
    return x


SOLD = from_yaml("""
workflow: shop.class
parameters:
  order-id: {type: integer, required: true}
  lines: {type: array, items: {type: object, properties: {a-b: {type: string}}}}
tasks: {only: {action: shop.charge, input: {order: 1}}}
""")
ALL = (charge, grown, anything, SOLD)


def listed(*defined: Action[..., Any] | Workflow, enabled: bool = True) -> list[dict[str, Any]]:
    masking = Masking([])
    return [
        {"ref": one.ref, "enabled": enabled, "definition": masking.definition(one.kind, one.document().body)}
        for one in defined
    ]


CALLER = """
from typing import Any, assert_type
from uuid import UUID

from penstock import Client, SyncClient
from penstock.client.http_client import HttpClient
from penstock.client.sync_http_client import SyncHttpClient
from penstock.language.terms.action_ref import ActionCall

import installation
from installation import ShopChargeAddress, ShopChargeItem, ShopChargeResult, list_, shop, typed

item: ShopChargeItem = {"sku": "pen", "colour": "blue"}
to: ShopChargeAddress = {"street": "Main Street", "int": "b"}
call = shop.charge.call(order=7, items=[item], key="k", mode="it's \\"slow\\"", to=to, when="2026-11-22T10:00:00Z")
assert_type(call, ActionCall[ShopChargeResult])
typed.dict.call(x=[1], more=2)
list_.grown.call(tree={"name": "a", "children": [{"name": "b"}]})
shop.class_.call(lines=[{"a-b": "c"}], **{"order-id": 7})


async def right(client: Client, http: HttpClient, blocking: SyncClient, both: SyncHttpClient) -> None:
    assert_type(await client.run(call), ShopChargeResult)
    assert_type(await http.run(call, timeout=3), ShopChargeResult)
    assert_type(await http.run(shop.charge, {"order": 7}), ShopChargeResult)
    assert_type(blocking.run(call), ShopChargeResult)
    assert_type(both.run(call), ShopChargeResult)
    assert_type(both.start(call, key="k"), UUID)
    assert_type(await http.start(call), UUID)
    assert_type(await http.run("shop.charge"), Any)


def wrong() -> None:
    shop.charge.call(order="7", items=[], key="k")
    shop.charge.call(ordre=7, order=7, items=[], key="k")
    shop.charge.call(order=7, items=[])
    shop.charge.call(order=7, items=[{"sku": 1}], key="k")
    shop.charge.call(order=7, items=[], key="k", mode="slow")
    shop.charge.call(order=7, items=[], key="k", to={"street": "a", "town": "b"})
    list_.grown.call(tree={"children": []})
    shop.discharge
    shop.charge = shop.class_
"""
FAULTS = [
    "arg-type", "call-arg", "call-arg", "typeddict-item", "arg-type", "arg-type", "typeddict-item",
    "attr-defined", "misc",
]  # fmt: skip
"""What mypy calls each line of `wrong`."""


def test_mypy_takes_it_and_a_right_caller_and_refuses_each_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "installation.py").write_text(module_of(listed(*ALL)))
    (tmp_path / "caller.py").write_text(CALLER)
    mypy = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(tmp_path / "cache"),
    ]
    ran = subprocess.run(
        [*mypy, "installation.py", "caller.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "MYPYPATH": str(Path(penstock.__file__).parents[1])},
    )
    said = [line for line in ran.stdout.splitlines() if ": error: " in line]
    first = CALLER[: CALLER.index("def wrong")].count("\n") + 2
    found = {int(line.split(":")[1]): line.rpartition("[")[2].rstrip("]") for line in said}
    assert {line.split(":")[0] for line in said} == {"caller.py"}, ran.stdout + ran.stderr
    assert found == dict(enumerate(FAULTS, first)), ran.stdout


def test_the_module_can_be_imported_and_names_the_start(tmp_path: Path) -> None:
    (tmp_path / "installation.py").write_text(module_of(listed(*ALL)))
    made = runpy.run_path(str(tmp_path / "installation.py"))
    call = made["shop"].charge.call(order=7, items=[], key="k")
    assert (call.ref, call.parameters) == ("shop.charge", {"order": 7, "items": [], "key": "k"})
    assert made["shop"].class_.call(**{"order-id": 7}).parameters == {"order-id": 7}
    assert made["list_"].grown.ref == "list.grown"
    with pytest.raises(TypeError, match="order"):
        made["shop"].charge.call(ordre=7, items=[], key="k")


def test_the_order_of_definitions_and_of_their_fields_changes_nothing() -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: turned(value[name]) for name in reversed(value)}
        return value

    assert module_of(listed(*ALL)) == module_of([turned(one) for one in reversed(listed(*ALL))])


def test_the_digest_changes_only_with_the_interface_of_an_action() -> None:
    digest = digest_of(module_of(listed(charge)))
    assert digest is not None
    assert digest_of(module_of(listed(charge.with_options(retry=3)))) == digest
    assert digest_of(module_of(listed(charge.with_schemas(parameters={"order": "string"})))) != digest
    assert digest_of(module_of(listed(charge) + listed(SOLD, enabled=False))) == digest
    assert digest_of("def of_somebody_else() -> None: ...") is None


def test_a_default_that_is_a_secret_is_not_in_it() -> None:
    text = module_of(listed(charge))
    assert "pin: str = _OMITTED" in text
    assert "1234" not in text


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({}, "Any"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"enum": ["a", 1, None]}, 'Literal["a", 1] | None'),
        ({"const": True}, "Literal[True]"),
        ({"enum": [1.5]}, "float"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "dict[str, int]"),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "dict[str, Any]"),
        ({"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]}, "int | list[str]"),
        ({"type": "string", "anyOf": [{"minLength": 1}, {"pattern": "a"}]}, "str"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "str"),
        ({"$ref": "#/$defs/word", "$defs": {"word": {"type": "string"}}}, "str"),
        ({"type": "array", "items": {"$ref": "#"}}, "list[list[Any]]"),
        ({"type": "string", "writeOnly": True, "enum": ["***"]}, "str"),
        ({"type": "integer", "secret": True}, "int"),
        ({"secret": True}, "str"),
    ],
)
def test_schemas_become_types(schema: dict[str, Any], kind: str) -> None:
    text = module_of([{"ref": "a.b", "enabled": True, "definition": {"result": schema}}])
    assert f"def _a__b(**others: Any) -> {kind}:" in text


def test_no_description_ends_the_text_that_it_is_in(tmp_path: Path) -> None:
    said = 'of """ and \\ and \\""" and \x00\x85'
    names = {"a": {"default": said, "type": "string"}, "b": {"enum": [said]}}
    definition = {"description": said, "parameters": {"properties": names, "additionalProperties": False}}
    (tmp_path / "made.py").write_text(
        module_of([{"ref": "a.b", "enabled": True, "definition": definition}]), encoding="utf-8"
    )
    assert runpy.run_path(str(tmp_path / "made.py"))["a"].b.call(a="x").parameters == {"a": "x"}
