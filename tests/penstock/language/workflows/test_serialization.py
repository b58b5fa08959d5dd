"""YAML in, YAML out, and every problem at its line."""

from __future__ import annotations

from textwrap import dedent

import pytest

from penstock.errors import DefinitionError
from penstock.language.terms.sources import Source
from penstock.language.workflows import safe_yaml
from penstock.language.workflows.serialization import from_body, from_value, from_yaml, to_yaml

FULL = """
workflow: shop.fulfil
description: |
  Two lines
  of it.
parameters:
  order: {type: object, required: true}
  tries: {type: integer, default: 3}
vars: {total: 0, note: 'on'}
timeout: 1h30m
limits: {max: 5, by: order.customer}
tasks:
  reserve:
    action: shop.reserve
    input: {order: "{{ parameters.order }}"}
    retry: {max_attempts: 3, initial_delay: 1s}
    timeout: 10s
    recovery: {on_worker_loss: fail}
    publish: {total: "{{ result.total }}"}
  pack:
    action: shop.pack
    needs: reserve
    with_items: "{{ tasks.reserve.result.parcels }}"
    concurrency: "{{ parameters.tries }}"
    batch_size: 2
    item_failures: {tolerate: 10%, then: stop}
    input: {parcels: "{{ item }}", n: "{{ index }}"}
    route: "packers-{{ vars.note }}"
    delay: "{{ vars.total }}"
    limits: [{rate: 100/min}]
  wait:
    wait_for_event: {trigger: shop.paid, filter: event.payload.id == parameters.order.id, timeout: 2d}
    needs: [reserve]
    allow_failure: true
  ask:
    inquiry: {prompt: "Ship {{ parameters.order }}?", schema: {type: boolean}, assignee: ops, default: false, timeout: 60}
  sub:
    workflow: shop.fulfil
    when: {all: [one_failed, {none: [{skipped: wait}, {context: total, op: "==", value: null}]},
                 {context: total, op: ">", value: 1}, {context: total, op: exists}, "{{ vars.total }}"]}
    needs: [pack, wait]
    next:
      - {when: failed() and error.type == "X", publish: {note: failed}, do: ask}
      - {do: [end]}
  end: {action: noop, join: 1}
output: {total: "{{ vars.total }}", answer: "{{ tasks.ask.result }}"}
on_exit: {action: shop.release, input: {how: "{{ system.status }}"}}
"""


def problems(text: str) -> list[str]:
    with pytest.raises(DefinitionError) as refused:
        from_yaml(dedent(text), "w.yaml")
    return refused.value.message.splitlines()


def test_everything_survives_the_way_to_yaml_and_to_storage() -> None:
    workflow = from_yaml(FULL, "w.yaml")
    again = from_yaml(to_yaml(workflow))
    assert again.body() == workflow.body()
    assert again.digest == from_body(workflow.document().body).digest == workflow.digest
    assert workflow.body()["tasks"][0]["timeouts"] == {"attempt": 10}
    assert workflow.vars["note"] == "on"


def test_defaults_are_not_stored_and_leave_the_digest_alone() -> None:
    short = from_yaml("workflow: a.b\ntasks: {x: {action: noop}}")
    long = from_yaml(
        "workflow: a.b\ntasks: [{name: x, action: noop, needs: [], allow_failure: false, input: {}}]"
    )
    assert short.digest == long.digest
    assert short.body() == {"format": 1, "ref": "a.b", "tasks": [{"name": "x", "action": "noop"}]}


def test_the_order_of_tasks_is_part_of_the_content_and_the_order_of_keys_is_not() -> None:
    one = from_yaml("workflow: a.b\ntasks: {x: {action: noop, publish: {a: 1, b: 2}}, y: {action: noop}}")
    other = from_yaml("workflow: a.b\ntasks: {x: {publish: {b: 2, a: 1}, action: noop}, y: {action: noop}}")
    swapped = from_yaml("workflow: a.b\ntasks: {y: {action: noop}, x: {action: noop, publish: {a: 1, b: 2}}}")
    assert one.digest == other.digest != swapped.digest


def test_limits_of_the_workflow_and_of_its_tasks_are_definitions_of_their_own() -> None:
    workflow = from_yaml(FULL, "w.yaml")
    _, whole, of_pack = workflow.parts()
    assert (whole.scope, whole.max, whole.by) == ("shop.fulfil", 5, ("order.customer",))
    assert (of_pack.scope, of_pack.rate.count) == ("shop.fulfil.pack", 100)


def test_unknown_options_are_refused_with_a_suggestion() -> None:
    found = problems(
        """
        workflow: a.b
        tasks:
          x:
            action: noop
            inputs: {}
          y:
            action: a.c
            retry: {max_atempts: 3}
          z:
            action: a.c
            next:
              - {wen: "true", do: x}
        """
    )
    assert found == [
        "w.yaml:6: workflow a.b: tasks.x.inputs: unknown option. Did you mean 'input'?",
        "w.yaml:9: workflow a.b: tasks.y.retry.max_atempts: unknown option. Did you mean 'max_attempts'?",
        "w.yaml:13: workflow a.b: tasks.z.next[0].wen: unknown option. Did you mean 'when'?",
    ]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("{}", "does nothing"),
        ("{action: a.b, workflow: a.c}", "has action and workflow"),
        ("{action: noop, with_items: [1]}", "has `with_items`, which cannot be used here"),
        (
            "{action: a.b, concurrency: 2}",
            "has `concurrency`, which cannot be used here: it needs with_items",
        ),
        ("{inquiry: {prompt: x}, input: {a: 1}}", "has `input`, which cannot be used here"),
        ("{action: a.b, delay: 5x}", "is not a duration: '5x'"),
        ("{action: a.b, delay: -1}", "must be between 0 and 100 years"),
        ("{action: ab}", "is not a ref: 'ab'"),
        ("{action: a.b, with_items: [1], batch_size: 0}", "should be greater than or equal to 1"),
        ("{action: a.b, with_items: [1], item_failures: {tolerate: many}}", "is not a number of items"),
        ("{action: a.b, with_items: items}", "is a text without an expression"),
        ("{action: a.b, timeout: 5, timeouts: {attempt: 6}}", "has both timeout and timeouts"),
        ("{action: a.b, next: [{when: failed()}]}", "leads nowhere"),
        ("{action: a.b, when: succes}", "is not a rule: 'succes'"),
        ("{action: a.b, when: {sucess: x}}", "a rule is one of all_success"),
        ("{action: a.b, when: {all: []}}", "should have at least 1 item"),
        ("{action: a.b, when: {context: x, op: '=~', value: 1}}", "should be '=='"),
        ("{action: a.b, when: {context: x, op: '>'}}", "`>` takes a value"),
        ("{action: a.b, retry: {max_attempts: 0}}", "should be greater than or equal to 1"),
        ("{action: a.b, route: 'a b'}", "route"),
        ("3", "should be a mapping of options"),
    ],
)
def test_impossible_tasks_are_refused(task: str, said: str) -> None:
    found = problems(f"workflow: a.b\ntasks:\n  x:\n    {task}")
    assert said in found[0]
    assert found[0].startswith("w.yaml:"), found
    assert "tasks.x" in found[0]


def test_a_file_that_is_no_workflow_is_refused_where_it_goes_wrong() -> None:
    assert "w.yaml:1: it is not a workflow" in problems("- 1")[0]
    assert problems("workflow: a.b\ntasks: {}") == ["w.yaml:2: workflow a.b: tasks: there are no tasks"]
    assert (
        "w.yaml:3:1: `tasks` is given twice"
        in problems("workflow: a.b\ntasks: {x: {action: noop}}\ntasks: {}")[0]
    )
    assert "tasks: is missing" in problems("workflow: a.b")[0]
    assert (
        "w.yaml:1: workflow Ab: ref: is not a ref: 'Ab'"
        in problems("workflow: Ab\ntasks: {x: {action: noop}}")[0]
    )


def test_a_workflow_inside_a_larger_file_keeps_its_lines() -> None:
    value, marks = safe_yaml.read(
        "name: shop\nworkflows:\n  w:\n    tasks:\n      x: {action: noop, o: 1}\n", "pack.yaml"
    )
    source = Source("pack.yaml", 1, {place: line for place, (line, _) in marks.items()})
    with pytest.raises(DefinitionError, match=r"pack\.yaml:5: workflow shop\.w: tasks\.x\.o: unknown option"):
        from_value({"workflow": "shop.w", **value["workflows"]["w"]}, source.at(("workflows", "w")))


def test_a_name_has_to_be_a_word() -> None:
    found = problems("workflow: a.b\ntasks:\n  one-two: {action: noop}")
    assert found[0] == "w.yaml:3: workflow a.b: tasks.one-two.name: is not a name: 'one-two'"
