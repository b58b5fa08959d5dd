from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import pytest
from pydantic import BaseModel, Field, SecretStr

from penstock.errors import DefinitionError, InvalidInput
from penstock.language.definitions import Action, Limit, Pack, action
from penstock.language.policies import RetryPolicy
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
    """Charge a card.

    More about it."""
    return {customer: amount}


def test_an_action_is_named_after_its_module_s_pack_and_its_function() -> None:
    assert (charge.ref, charge.pack, charge.name) == ("shop.charge", "shop", "charge")
    assert charge.description == "Charge a card.\n\nMore about it."
    assert repr(charge) == "<action shop.charge>"


def test_it_still_is_the_function_for_whoever_calls_it() -> None:
    assert asyncio.run(charge("c", amount=2)) == {"c": 2}


def test_coroutines_run_async_and_functions_in_threads_unless_chosen_otherwise() -> None:
    @action
    def plain() -> None: ...

    @action(executor="process", options={"memory_limit": 2**20})
    def heavy() -> None: ...

    assert (charge.executor, charge.is_coroutine) == ("async", True)
    assert (plain.executor, plain.is_coroutine) == ("thread", False)
    assert (heavy.executor, heavy.options) == ("process", {"memory_limit": 2**20})


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


def test_what_an_annotation_says_beyond_the_type_is_checked_and_shown() -> None:
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


def test_a_run_gets_only_what_is_declared() -> None:
    with pytest.raises(InvalidInput, match="unknown 'custmer'") as raised:
        charge.bind({"custmer": "x", "customer": "c"})
    assert "customer" in str(raised.value.hint)


def test_what_is_missing_or_of_another_type_is_named() -> None:
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


def test_double_star_takes_what_was_not_declared() -> None:
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


def test_what_steers_an_execution_is_not_a_part_of_its_result() -> None:
    @action
    def ask() -> bool | AskInquiry:
        return True

    assert ask.result_schema == {"type": "boolean"}


def test_wrapped_functions_keep_their_signature() -> None:
    def logged(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) + 1

        return wrapper

    @action
    @logged
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    assert add.ref == "shop.add"
    assert add.bind({"a": 1, "b": 2}) == {"a": 1, "b": 2}
    assert add(1, 2) == 4


def test_short_forms_mean_the_long_ones() -> None:
    @action(timeout="30s", on_worker_loss="fail", max_recoveries=1, on_failure="notify", on_success=charge)
    def short() -> None: ...

    @action(
        ref="shop.short",
        timeouts={"attempt": 30},
        recovery={"on_worker_loss": "fail", "max_recoveries": 1},
        on_failure=["shop.notify"],
        on_success=["shop.charge"],
        executor="thread",
    )
    def long() -> None: ...

    assert short.document().digest == long.document().digest
    assert short.policies.timeouts.attempt == 30
    assert short.document().body["on_failure"] == ["shop.notify"]


def test_what_was_not_chosen_is_not_stored() -> None:
    assert set(charge.document().body) == {"ref", "executor", "description", "parameters", "result"}


def test_with_options_varies_an_action_and_leaves_the_first_as_it_was() -> None:
    @action(retry=RetryPolicy(max_attempts=3), timeouts={"attempt": 5, "total": 60})
    def once(a: int) -> None: ...

    slow = once.with_options(ref="shop.slow", timeout="1h", route="slow")
    assert (slow.ref, slow.policies.timeouts.attempt, slow.policies.timeouts.total) == ("shop.slow", 3600, 60)
    assert slow.policies.retry.max_attempts == 3
    assert slow.bind({"a": 1}) == {"a": 1}
    assert once.policies.timeouts.attempt == 5
    with pytest.raises(DefinitionError, match="timeuot"):
        once.with_options(timeuot=3)


def test_limits_of_an_action_become_definitions_of_their_own() -> None:
    @action(limits=[Limit(5, by="customer.id"), Limit(rate="10/s")])
    def limited(customer: dict[str, Any]) -> None: ...

    _, by_customer, rate = [part.document() for part in limited.parts()]
    assert (by_customer.kind, by_customer.ref) == ("limit", "shop.limited.by_customer_id")
    assert by_customer.body == {
        "ref": "shop.limited.by_customer_id",
        "scope": "shop.limited",
        "max": 5,
        "by": ["customer.id"],
    }
    assert rate.body["rate"] == {"count": 10, "seconds": 1}
    assert "limits" not in limited.document().body


def wrong(declare: Callable[[], object], message: str, hint: str = "") -> None:
    with pytest.raises(DefinitionError, match=re.escape(message)) as raised:
        declare()
    assert hint in str(raised.value.hint)
    assert re.search(r"test_action\.py:\d+: ", str(raised.value))


def test_wrong_declarations_are_refused_with_their_place_and_what_to_write() -> None:
    def positional(a: int, /) -> None: ...
    def starred(*a: int) -> None: ...
    def typed_rest(**a: int) -> None: ...
    def generator() -> Any:
        yield 1

    def Camel() -> None: ...
    def stranger(a: threading.Lock) -> None: ...  # type: ignore[name-defined] # noqa: F821
    def returns_lock() -> re.Scanner: ...  # type: ignore[name-defined]
    def field_default(a: int = Field(ge=1)) -> None: ...
    def fine() -> None: ...

    wrong(lambda: action(positional), "parameter 'a' can only be given by position", "by name")
    wrong(lambda: action(starred), "parameter 'a' can only be given by position")
    wrong(lambda: action(typed_rest), "would not be checked")
    wrong(lambda: action(generator), "is a generator", "list")
    wrong(lambda: action(Camel), "is not a ref: 'shop.Camel'", "shop.camel")
    wrong(lambda: action(stranger), "annotation cannot be evaluated", "TYPE_CHECKING")
    wrong(lambda: action(returns_lock), "has no JSON Schema", "JSON")
    wrong(lambda: action(field_default), "the default of 'a' is a Field", "Annotated")
    wrong(lambda: action(len), "is not a Python function")
    wrong(lambda: action(charge), "is an action already", "with_options")
    wrong(lambda: action(ref="a.b.c")(fine), "is not a ref: 'a.b.c'")
    wrong(lambda: action(retry={"max_atempts": 2})(fine), "retry.max_atempts: unknown option", "max_attempts")
    wrong(lambda: action(timeout="x")(fine), "timeouts.attempt: is not a duration", "1h30m")
    wrong(lambda: action(timeout=1, timeouts={"attempt": 2})(fine), "both given")
    wrong(lambda: action(route="no spaces")(fine), "route: route 'no spaces' is not a name")
    wrong(
        lambda: action(executor="thread", options={"memory_limit": 1})(fine),
        "options.memory_limit: unknown option",
    )
    wrong(lambda: action(executor="process", options={"memory": 1})(fine), "unknown option", "memory_limit")
    wrong(lambda: action(on_failure="Not A Ref")(fine), "on_failure")
    wrong(lambda: action(limits=[Limit(1, ref="shop.x", scope="*")])(fine), "a ref and a scope of its own")


def test_a_module_without_a_pack_must_say_which() -> None:
    namespace: dict[str, Any] = {"__name__": "somewhere"}
    code = "from penstock.language.definitions import action\n@action\ndef f(): ...\n"
    with pytest.raises(DefinitionError, match="belongs to no pack") as raised:
        exec(compile(code, "somewhere.py", "exec"), namespace)
    assert "Pack('shop')" in str(raised.value.hint)

    @action(pack="other")
    def named() -> None: ...

    assert named.ref == "other.named"


def test_an_unknown_option_of_the_decorator_is_refused() -> None:
    with pytest.raises(DefinitionError, match="retries: unknown option"):

        @action(retries=3)  # type: ignore[call-overload,untyped-decorator,unused-ignore]
        def f() -> None: ...


def test_binding_one_parameter_does_no_more_than_validate_it() -> None:
    @action
    def one(a: int) -> None: ...

    params = {"a": 1}
    bound = one.bind(params)
    assert bound == params
    assert bound is not params
    assert isinstance(one, Action)
