"""The names of steps and children, and the targets of calls: what may be one."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import Trigger, action
from penstock.engine.durable.names import called_name, child_name, signal_name, step_name, target_of
from penstock.errors import DefinitionError

STEP_NAMES: dict[Any, bool] = {
    "charge": True,
    "charge the card, twice: ä": True,
    "x" * 200: True,
    "x" * 201: False,
    "": False,
    "a/b": False,
    "a\x1fb": False,
    "a\nb": False,
    b"charge": False,
    3: False,
    None: False,
}
CHILD_NAMES: dict[Any, bool] = {
    "charge": True,
    "Charge_2": True,
    "x" * 63: True,
    "x" * 64: False,
    "": False,
    "2nd": False,
    "_charge": False,
    "charge card": False,
    "chärge": False,
    b"charge": False,
    None: False,
}


@pytest.mark.parametrize("name", STEP_NAMES)
def test_step_name_has_1_to_200_characters_without_slash(name: Any) -> None:
    _check(step_name, name, STEP_NAMES[name], "a step's name")


@pytest.mark.parametrize("name", STEP_NAMES)
def test_signal_name_has_1_to_200_characters_without_slash(name: Any) -> None:
    _check(signal_name, name, STEP_NAMES[name], "a signal's name")


def test_wrong_name_of_a_signal_is_shown_in_part() -> None:
    with pytest.raises(DefinitionError) as refused:
        signal_name("x" * 5000)
    assert len(refused.value.message) < 200
    assert "ctx.signal" in str(refused.value.hint)


@pytest.mark.parametrize("name", STEP_NAMES)
def test_name_of_called_step_is_a_step_name(name: Any) -> None:
    _check(called_name, name, STEP_NAMES[name], "a step's name")


def test_step_cannot_have_name_of_undo() -> None:
    with pytest.raises(DefinitionError, match=r"ctx\.on_failure registers"):
        called_name("on failure refund")


@pytest.mark.parametrize("name", CHILD_NAMES)
def test_child_name_is_part_of_a_namespace(name: Any) -> None:
    _check(child_name, name, CHILD_NAMES[name], "a child execution has a name")


def _check(check: Any, name: Any, allowed: bool, says: str) -> None:
    if allowed:
        assert check(name) == name
    else:
        with pytest.raises(DefinitionError, match=says) as refused:
            check(name)
        assert refused.value.hint


async def _plain(n: int) -> int:
    return n


def test_target_is_a_ref_or_has_one() -> None:
    assert target_of("shop.charge") == "shop.charge"
    assert target_of(action(pack="t", ref="t.plain")(_plain)) == "t.plain"
    assert target_of(Trigger("shop.paid")) == "shop.paid"


@pytest.mark.parametrize("target", ["charge", "", 3, None, _plain])
def test_target_without_a_pack_is_refused(target: Any) -> None:
    with pytest.raises(DefinitionError, match="neither an action nor a workflow"):
        target_of(target)
