"""The faults of a workflow that are refused when it is applied, each with its place and with a remedy."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from penstock.language.workflows.check import check, unknown_refs
from penstock.language.workflows.known_definition import KnownDefinition
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.serialization import _body


def workflow(tasks: str, more: str = "") -> Workflow:
    from penstock.language.workflows import safe_yaml

    text = f"workflow: a.w\n{dedent(more)}\ntasks:\n{indent(dedent(tasks), '  ')}"
    return Workflow.model_validate(_body(safe_yaml.read(text)[0])[0])


def said(tasks: str, more: str = "") -> list[str]:
    return [f"{problem} | {problem.hint}" for problem in check(workflow(tasks, more))]


def test_a_circle_is_named_task_by_task() -> None:
    found = said(
        """
        a: {action: noop, needs: d}
        b: {action: noop, needs: a}
        c: {action: noop, needs: b, next: [{do: d}]}
        d: {action: noop, join: all}
        e: {action: noop, needs: [a, d]}
        """
    )
    assert len(found) == 1
    assert found[0].startswith("tasks[0]: the tasks go in a circle: a -> b -> c -> d -> a |")
    assert "a -> a" in said("a: {action: noop, next: [{do: a}]}")[0]


def test_a_long_circle_is_found_without_recursion() -> None:
    tasks = "".join(f"t{n}: {{action: noop, needs: t{(n - 1) % 5000}}}\n" for n in range(5000))
    assert "go in a circle" in said(tasks)[0]


@pytest.mark.parametrize(
    ("tasks", "problem"),
    [
        ("a: {action: noop, needs: [bb]}\nb: {action: noop}", "tasks[0].needs[0]: there is no task `bb` | Did you mean 'b'?"),
        ("a: {action: noop, next: [{do: [zz]}]}", "tasks[0].next[0].do[0]: there is no task `zz`"),
        ("on_exit: {action: noop}", "`on_exit` is the name of the exit task"),
        ("a: {action: noop, next: [{do: b}]}\nb: {action: noop, needs: a}", "`next` of `a` leads here already"),
        (
            "a: {action: noop}\nb: {action: noop, next: [{do: c}]}\nc: {action: noop, needs: a}",
            "it has `needs`, and `next` of b leads here too | Say whether it waits",
        ),
        ("a: {action: noop, join: all}", "nothing comes before this task"),
        (
            "a: {action: noop}\nb: {action: noop, needs: a, join: 2}",
            "it waits for 2 tasks, but only 1 can lead to it, so it never runs",
        ),
        ("a: {action: noop}\nb: {action: noop, needs: a, join: any, when: all_done}", "contradict"),
        ("a: {action: noop}\nb: {action: noop, needs: a, join: all, when: one_failed}", "does not wait for all"),
        ("a: {action: noop, when: one_failed}", "nothing comes before this task"),
        ("a: {action: noop}\nb: {action: noop, when: {failed: a}}", "the rule names `a`, which is not directly before this task"),
        ("a: {action: x.y}\nb: {action: noop, needs: a, when: {all: [{failed: a}, {success: a}]}}", "it can never run"),
        ("a: {action: x.y, allow_failure: true}\nb: {action: noop, needs: a, when: {failed: a}}", "it can never run"),
        ("a: {action: noop}\nb: {action: noop, needs: a, when: one_failed}", "it can never run"),
        ("a: {action: fail}\nb: {action: noop, needs: a}", "it can never run"),
        ("a: {action: x.y, next: [{do: b}]}\nb: {action: noop, when: {failed: a}}", "it can never run"),
        ("a: {action: x.y, next: [{when: false, do: b}]}\nb: {action: noop}", "it is never taken"),
        (
            "a: {action: x.y}\nb: {action: noop, needs: a, when: \"{{ tasks.a.status == 'failed' }}\"}",
            "it asks for the status of `a`, which is always `completed` here",
        ),
    ],
)  # fmt: skip
def test_terms_that_cannot_be_meant(tasks: str, problem: str) -> None:
    found = said(tasks)
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("{{ parameters.a + }}", "tasks[1].input: `{{ parameters.a + }}`, line 1, column 19"),
        ("{{ parameters.nn }}", "there is no `nn` in `parameters` | Did you mean 'n'?"),
        ("{{ tasks.aa.result }}", "there is no task `aa` | Did you mean 'a'?"),
        (
            "{{ tasks.c.result }}",
            "it uses `c`, which does not come before it | Add `c` to the `needs` of `b`.",
        ),
        ("{{ tasks.b.result }}", "`b` uses its own result"),
        ("{{ tasks.a.output }}", "a task has no `output` | Write `tasks.a.result.output`."),
        ("{{ tasks[vars.v].result }}", "it uses `tasks` without naming one"),
        ("{{ tasks | length }}", "it uses `tasks` without naming one"),
        ("{{ item }}", "`item` is not defined here | It is only available in a task with `with_items`."),
        ("{{ result }}", "`result` is not defined here"),
        ("{{ params.n }}", "`params` is not defined here | Did you mean `parameters`?"),
        ("{{ vars.vv }}", "no task publishes the variable `vv` | Did you mean 'v'?"),
        ("{{ vars.late }}", "the variable `late` is published by no task before this one"),
        ("{{ vars.x | fiter }}", "there is no filter `fiter`"),
    ],
)
def test_expressions_that_cannot_work(expression: str, problem: str) -> None:
    found = said(
        f"""
        a: {{action: x.y}}
        b: {{action: x.y, needs: a, input: {{it: "{expression}"}}}}
        c: {{action: x.y, publish: {{late: 1}}}}
        """,
        "parameters: {n: integer}\nvars: {v: 1, x: 2}",
    )
    assert len(found) == 1
    assert problem in found[0]


def test_a_right_workflow_passes_the_check() -> None:
    assert not said(
        """
        a: {action: x.y, publish: {n: "{{ result.n + vars.n }}", anything: "{{ vars.get('z') }}"}}
        b: {action: x.y, needs: a, with_items: "{{ tasks.a.result.list }}", input: {i: "{{ item.x[index] }}"}}
        c: {action: x.y, needs: b, when: {context: n, op: ">", value: 1}, input: {all: "{{ tasks.a.result }}"}}
        d: {wait_for_event: {trigger: x.t, filter: event.payload.n == vars.n and tasks.a.result}, needs: a}
        """,
        """
        parameters: {p: integer}
        vars: {n: "{{ parameters.p }}"}
        output: "{{ context.n + tasks.b.result | length }}"
        on_exit: {action: x.z, input: {s: "{{ system.status }}", a: "{{ tasks.a.status }}", n: "{{ vars.n }}"}}
        """,
    )


def test_a_variable_of_its_own_needs_a_first_value() -> None:
    assert (
        "the variable `n` has no value before this task"
        in said("a: {action: x.y, publish: {n: '{{ vars.n + 1 }}'}}")[0]
    )


def test_a_context_comparison_with_a_name_that_is_not_there() -> None:
    tasks = "a: {action: x.y, when: {context: orderr.total, op: '>', value: 1}}"
    assert (
        "the context has no `orderr.total` | Did you mean 'order'?"
        in said(tasks, "parameters: {order: object}")[0]
    )
    assert not said(tasks)
    assert not said(tasks.replace("'>', value: 1", "exists"), "parameters: {order: object}")


def test_refs_are_looked_up_and_inputs_compared_with_their_parameters() -> None:
    schema = {"properties": {"n": {}, "m": {}}, "required": ["n"], "additionalProperties": False}
    known = {
        "shop.charge": KnownDefinition("action", schema),
        "shop.flow": KnownDefinition("workflow"),
        "shop.paid": KnownDefinition("trigger"),
    }
    flow = workflow(
        """
        a: {action: shop.chrage}
        b: {action: shop.flow}
        c: {workflow: shop.charge, input: {n: 1}}
        d: {action: shop.charge, input: {nn: 1}}
        e: {wait_for_event: {trigger: shop.pay}}
        f: {workflow: a.w}
        g: {action: shop.charge, input: "{{ parameters }}"}
        """,
        "on_exit: {action: shop.gone}",
    )
    assert [f"{problem} | {problem.hint}" for problem in unknown_refs(flow, known)] == [
        "tasks[0].action: there is no action `shop.chrage` | Did you mean 'shop.charge'?",
        "tasks[1].action: `shop.flow` is a workflow | Write `workflow: shop.flow`.",
        "tasks[2].workflow: `shop.charge` is an action | Write `action: shop.charge`.",
        "tasks[3].input.nn: `shop.charge` has no parameter `nn` | Did you mean 'n'?",
        "tasks[3].input: `shop.charge` needs the parameter `n` | Give it: `n: ...`.",
        "tasks[4].wait_for_event: there is no trigger `shop.pay` | Did you mean 'shop.paid'?",
        "on_exit.action: there is no action `shop.gone` | Available: shop.charge.",
    ]


def test_a_large_workflow_is_checked_in_time_that_grows_with_its_edges() -> None:
    layers = [[f"t{layer}_{n}" for n in range(100)] for layer in range(20)]
    tasks = "".join(
        f"{name}: {{action: x.y, needs: [{', '.join(layers[layer - 1][n : n + 5])}], publish: {{v{n}: 1}}}}\n"
        if layer
        else f"{name}: {{action: x.y}}\n"
        for layer, names in enumerate(layers)
        for n, name in enumerate(names)
    )
    assert not said(tasks)
