"""The parameters of the executions that a workflow starts, or the error of their task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.engine import Start
from penstock.engine.children import child_parameters
from penstock.language.schemas import Schema
from penstock.language.workflows.target import Target, target_ref
from tests.penstock.engine.written import run

SCHEMAS = {7: Schema({"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]})}
ASK = "a: {inquiry: {prompt: 'Ship {{ 1 + 1 }}?', timeout: 9, schema: {type: boolean}%s}}"


def started(task: str) -> Start:
    return run(task).started["a", None]


def given(task: str, target: Target | None = None, *, depth: int = 1) -> tuple[Any, Any]:
    """The parameters, and the type and the message of the error."""
    parameters, error = child_parameters(started(task), target or Target(7, "action"), SCHEMAS, depth, 3)
    return json.loads(parameters), error and (error["type"], error["message"])


def test_a_child_gets_the_parameters_that_its_schema_allows() -> None:
    assert given("a: {action: t.a, input: {order: 1}}") == ({"order": 1}, None)
    parameters, error = given("a: {action: t.a, input: {order: one}}")
    assert parameters == {}
    assert error[0] == "InvalidInput"
    assert "order" in error[1]


@pytest.mark.parametrize("target", [None, Target(7, "action", enabled=False)])
def test_a_missing_or_retired_action_is_not_started(target: Target | None) -> None:
    parameters, error = child_parameters(started("a: {action: t.a}"), target, SCHEMAS, 1, 3)
    assert parameters == "{}"
    assert error == {"type": "NotFound", "message": "t.a is not registered, or is retired"}


def test_workflows_are_inside_one_another_only_so_deep() -> None:
    task = "a: {workflow: t.inner, input: {order: 1}}"
    assert given(task, Target(7, "workflow"), depth=3) == ({"order": 1}, None)
    parameters, (type, message) = given(task, Target(7, "workflow"), depth=4)
    assert (parameters, type) == ({}, "WorkflowTooDeep")
    assert message == "t.inner would be at nesting level 4, but max_workflow_depth is 3"
    assert given("a: {action: t.a, input: {order: 1}}", depth=4) == ({"order": 1}, None), (
        "an action is not a workflow"
    )


def test_a_wait_for_an_event_names_event_deadline_and_filter() -> None:
    task = "a: {wait_for_event: {trigger: t.paid, filter: '{{ event.order == parameters.p }}', timeout: 5}}"
    parameters, error = given(task, Target(0, "wait"))
    assert error is None
    assert (parameters["trigger"], parameters["timeout"]) == ("t.paid", 5)
    assert parameters.items() >= started(task).body.items()
    assert parameters["filter"]
    assert target_ref(started(task).step) == "wait_for_event"


def test_an_inquiry_names_assignee_question_and_deadline() -> None:
    assert given(ASK % ", assignee: ann, default: true", Target(0, "wait")) == (
        {
            "prompt": "Ship 2?",
            "schema": {"type": "boolean"},
            "assignee": "ann",
            "timeout": 9,
            "default": True,
        },
        None,
    )
    anything, error = given("a: {inquiry: {prompt: Well, default: 5}}", Target(0, "wait"))
    assert error is None
    assert (anything["schema"], anything["assignee"], anything["timeout"], anything["default"]) == (
        None,
        None,
        None,
        5,
    )
    assert target_ref(started(ASK % "").step) == "inquiry"


def test_an_inquiry_that_cannot_be_asked_fails_its_task() -> None:
    parameters, error = given(ASK % ", assignee: '{{ 5 }}'", Target(0, "wait"))
    assert (parameters, error) == ({}, ("InvalidInput", "the assignee of `a` is a int, not a text"))
    parameters, (type, message) = given(ASK % ", default: '{{ \"so\" }}'", Target(0, "wait"))
    assert (parameters, type) == ({}, "InvalidInput")
    assert "the default answer of `a`" in message


def test_a_target_is_named_as_the_task_names_it() -> None:
    assert target_ref(started("a: {action: t.a}").step) == "t.a"
    assert target_ref(started("a: {workflow: t.inner}").step) == "t.inner"
