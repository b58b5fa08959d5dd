"""The parameters and result of an action by the annotations of its function."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr

from penstock.errors import InvalidInput
from penstock.language.definitions import Action, Pack, action
from penstock.language.schemas import Secret
from penstock.run.steering import AskInquiry

pack = Pack("shop")


class Kind(Enum):
    FAST = "fast"


class Address(BaseModel):
    street: str
    number: int = 1


@action
async def charge(customer: str, amount: int = 1, card: Annotated[str, Secret] = "none") -> dict[str, int]:
    return {customer: amount}


def test_annotations_become_the_schemas_of_parameters_and_result() -> None:
    assert charge.parameters_schema == {
        "type": "object",
        "properties": {
            "customer": {"type": "string"},
            "amount": {"type": "integer", "default": 1},
            "card": {"type": "string", "secret": True},
        },
        "required": ["customer"],
        "additionalProperties": False,
    }
    assert charge.result_schema == {"type": "object", "additionalProperties": {"type": "integer"}}


def test_parameters_arrive_as_the_types_that_were_asked_for() -> None:
    @action
    def typed(
        at: datetime, id: UUID, kind: Kind, home: Address, pin: SecretStr, json: int, rest: Any = None
    ) -> None: ...

    bound = typed.bind(
        {
            "at": "2030-01-02T00:00:00Z",
            "id": str(UUID(int=1)),
            "kind": "fast",
            "home": {"street": "s"},
            "pin": "1234",
            "json": 3,
        }
    )
    assert bound["at"].year == 2030
    assert bound["id"] == UUID(int=1)
    assert bound["kind"] is Kind.FAST
    assert bound["home"] == Address(street="s")
    assert bound["pin"].get_secret_value() == "1234"
    assert bound["json"] == 3
    assert "rest" not in bound
    assert typed.parameters_schema["properties"]["pin"]["writeOnly"] is True
    assert typed.result_schema == {"type": "null"}


def test_a_constraint_of_an_annotation_is_checked_and_shown() -> None:
    @action
    def limited(amount: Annotated[int, Field(ge=1, description="In cents.")] = 5) -> None: ...

    assert limited.parameters_schema["properties"]["amount"] == {
        "type": "integer",
        "minimum": 1,
        "description": "In cents.",
        "default": 5,
    }
    with pytest.raises(InvalidInput, match="greater than or equal to 1"):
        limited.bind({"amount": 0})


def test_a_run_gets_only_declared_parameters() -> None:
    with pytest.raises(InvalidInput, match="unknown 'custmer'") as raised:
        charge.bind({"custmer": "x", "customer": "c"})
    assert "customer" in str(raised.value.hint)


def test_a_missing_or_mistyped_parameter_is_named() -> None:
    with pytest.raises(InvalidInput) as raised:
        charge.bind({"amount": "many"})
    assert "parameters.customer: is missing" in raised.value.message
    assert "parameters.amount: should be a valid integer" in raised.value.message
    assert "amount, card, customer" in str(raised.value.hint)


def test_nothing_is_said_about_the_value_of_a_secret() -> None:
    def never(value: str) -> str:
        raise ValueError(f"bad pin {value}")

    from pydantic import AfterValidator

    @action
    def login(pin: Annotated[str, AfterValidator(never), Secret]) -> None: ...

    with pytest.raises(InvalidInput, match=r"parameters\.pin: does not fit") as raised:
        login.bind({"pin": "hunter2"})
    assert "hunter2" not in str(raised.value)


def test_unannotated_parameters_take_anything_and_their_names_are_still_checked() -> None:
    @action
    def loose(a, b=2): ...  # type: ignore[no-untyped-def]

    assert loose.bind({"a": [1]}) == {"a": [1]}
    assert loose.result_schema is None
    with pytest.raises(InvalidInput, match="unknown"):
        loose.bind({"a": 1, "c": 2})


def test_double_star_takes_undeclared_parameters() -> None:
    @action
    def open_ended(a: int, **others) -> None: ...  # type: ignore[no-untyped-def]

    assert open_ended.bind({"a": 1, "b": "x"}) == {"a": 1, "b": "x"}
    assert "additionalProperties" not in open_ended.parameters_schema


def test_types_that_are_local_to_a_function_are_found() -> None:
    class Local(BaseModel):
        x: int

    @action
    def uses(local: Local) -> Local:
        return local

    assert uses.bind({"local": {"x": 1}}) == {"local": Local(x=1)}
    assert uses.result_schema == {
        "type": "object",
        "properties": {"x": {"type": "integer"}},
        "required": ["x"],
    }


def test_a_steering_return_type_is_not_a_part_of_the_result() -> None:
    @action
    def ask() -> bool | AskInquiry:
        return True

    assert ask.result_schema == {"type": "boolean"}


def test_binding_one_parameter_does_no_more_than_validate_it() -> None:
    @action
    def one(a: int) -> None: ...

    params = {"a": 1}
    bound = one.bind(params)
    assert bound == params
    assert bound is not params
    assert isinstance(one, Action)


class Options(BaseModel):
    words: list[str] = []


@dataclass
class Settings:
    words: list[str] = field(default_factory=list)


def test_execution_gets_a_fresh_copy_of_a_default() -> None:
    marker = object()

    @action
    def collects(
        a: list[int] = [],  # noqa: B006 (the default that the test is about)
        b: dict[str, list[int]] = {"x": []},  # noqa: B006
        c: Options = Options(),
        d: Settings = Settings(),
        e: object = marker,
    ) -> list[object]:
        a.append(1)
        b["x"].append(1)
        c.words.append("x")
        d.words.append("x")
        return [len(a), len(b["x"]), len(c.words), len(d.words), e is marker]

    assert collects.function is not None
    first = collects.function(**collects.bind({}))
    assert collects.function(**collects.bind({})) == first == [1, 1, 1, 1, True]
    assert collects.bind({"a": [5]})["a"] == [5]


@pytest.mark.parametrize("default", [float("nan"), float("-inf"), "\0", "\ud800", 2**64])
def test_default_that_cannot_be_stored_is_left_to_the_function(default: Any) -> None:
    @action
    def scaled(by: Any = default) -> None: ...

    assert scaled.parameters_schema["properties"]["by"] == {}
    assert scaled.bind({}) == {}
