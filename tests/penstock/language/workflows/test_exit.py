"""The exit task, written in Python."""

from __future__ import annotations

from typing import Any

import pytest

from penstock import inquiry, on_exit, system, workflow
from penstock.errors import DefinitionError
from penstock.language.definitions import Pack, action
from penstock.language.workflows import from_yaml

pack = Pack("shop")


@action
def reserve(order: dict[str, Any]) -> None: ...


@action
def release(order: dict[str, Any], how: str) -> None: ...


def test_the_exit_task_may_have_all_options_that_it_has_in_yaml() -> None:
    @workflow(pack="shop")
    def closing(order: dict[str, Any]) -> None:
        reserve(order=order)
        on_exit(release(order=order, how=system.status).set(retry={"max_attempts": 3}, allow_failure=True))

    in_yaml = from_yaml("""
        workflow: shop.closing
        parameters: {order: {type: object, required: true}}
        tasks:
          reserve: {action: shop.reserve, input: {order: "{{ parameters.order }}"}}
        on_exit:
          action: shop.release
          input: {order: "{{ parameters.order }}", how: "{{ system.status }}"}
          retry: {max_attempts: 3}
          allow_failure: true
    """)
    assert closing.on_exit == in_yaml.on_exit
    assert [task.name for task in closing.tasks] == ["reserve"]

    def in_place() -> None:
        first = reserve(order={})
        on_exit(inquiry("Well?").after(first))

    with pytest.raises(DefinitionError, match="needs"):
        workflow(pack="shop")(in_place)
