"""Actions: how they are declared, with which options, and what is refused."""

from __future__ import annotations

import asyncio
import functools
import re
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import Field

from penstock.errors import DefinitionError
from penstock.language.definitions import Limit, Pack, action
from penstock.language.policies.policies import RetryPolicy
from penstock.language.schemas import Secret
from tests.penstock.language.definitions.refusals import refused

pack = Pack("shop")


@action
async def charge(customer: str, amount: int = 1, card: Annotated[str, Secret] = "none") -> dict[str, int]:
    """Charge a card.

    More about it."""
    return {customer: amount}


def test_an_action_is_named_after_its_module_s_pack_and_its_function() -> None:
    assert (charge.ref, charge.pack, charge.name) == ("shop.charge", "shop", "charge")
    assert charge.description == "Charge a card.\n\nMore about it."
    assert repr(charge) == "<action shop.charge>"


def test_an_action_is_still_the_function_for_its_callers() -> None:
    assert asyncio.run(charge("c", amount=2)) == {"c": 2}


def test_coroutines_run_async_and_functions_in_threads_unless_chosen_otherwise() -> None:
    @action
    def plain() -> None: ...

    @action(executor="process", options={"memory_limit": 2**20})
    def heavy() -> None: ...

    assert (charge.body()["executor"], charge.is_coroutine) == ("async", True)
    assert (plain.body()["executor"], plain.is_coroutine) == ("thread", False)
    assert (heavy.executor, heavy.options) == ("process", {"memory_limit": 2**20})


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


def test_defaults_are_not_stored() -> None:
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


def test_wrong_declarations_are_refused_with_place_and_hint() -> None:
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

    refused(lambda: action(positional), "parameter 'a' can only be given by position", "by name")
    refused(lambda: action(starred), "parameter 'a' can only be given by position")
    refused(lambda: action(typed_rest), "would not be checked")
    refused(lambda: action(generator), "is a generator", "list")
    refused(lambda: action(Camel), "is not a ref: 'shop.Camel'", "shop.camel")
    refused(lambda: action(stranger), "annotation cannot be evaluated", "TYPE_CHECKING")
    refused(lambda: action(returns_lock), "has no JSON Schema", "JSON")
    refused(lambda: action(field_default), "the default of 'a' is a Field", "Annotated")
    refused(lambda: action(len), "is not a Python function")
    refused(lambda: action(charge), "is an action already", "with_options")
    refused(lambda: action(ref="a.b.c")(fine), "is not a ref: 'a.b.c'")
    refused(
        lambda: action(retry={"max_atempts": 2})(fine), "retry.max_atempts: unknown option", "max_attempts"
    )
    refused(lambda: action(timeout="x")(fine), "timeouts.attempt: is not a duration", "1h30m")
    refused(lambda: action(timeout=1, timeouts={"attempt": 2})(fine), "both given")
    refused(lambda: action(route="no spaces")(fine), "route: route 'no spaces' is not a name")
    refused(
        lambda: action(executor="thread", options={"memory_limit": 1})(fine),
        "options.memory_limit: unknown option",
    )
    refused(lambda: action(executor="process", options={"memory": 1})(fine), "unknown option", "memory_limit")
    refused(lambda: action(on_failure="Not A Ref")(fine), "on_failure")
    refused(lambda: action(limits=[Limit(1, ref="shop.x", scope="*")])(fine), "a ref and a scope of its own")


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
