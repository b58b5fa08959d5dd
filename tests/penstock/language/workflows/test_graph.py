"""The graph that both notations become, its order, its pictures, and its differences."""

from __future__ import annotations

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.language.workflows.diagram import to_dot, to_mermaid
from penstock.language.workflows.diff import diff
from penstock.language.workflows.graph import Graph, circle, topological
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.serialization import from_yaml

DIAMOND = """
workflow: a.w
tasks:
  last: {action: t.d, needs: [left, right]}
  left: {action: t.b, needs: first}
  right:
    action: t.c
    with_items: [1, 2]
    needs: first
    next: [{when: failed(), do: mend}]
  mend: {action: t.e}
  first: {action: x.first}
on_exit: {action: t.bye}
"""


def workflow(text: str = DIAMOND) -> Workflow:
    return from_yaml(dedent(text))


def test_the_order_is_as_declared_except_for_dependencies() -> None:
    graph = Graph(workflow())
    assert [node.name for node in graph.nodes] == ["first", "left", "right", "last", "mend"]
    assert [node.sources for node in graph.nodes] == [(), (0,), (0,), (1, 2), (2,)]
    assert [node.targets for node in graph.nodes] == [(1, 2), (3,), (3, 4), (), ()]
    assert graph[2].routes == {4: (0,)}
    assert [node.name for node in graph.entries] == ["first"]
    assert graph.exit is not None
    assert graph[graph.index["on_exit"]] is graph.exit


def test_needs_and_transitions_become_the_same_edges() -> None:
    needs = Graph(workflow("workflow: a.w\ntasks: {a: {action: t.t}, b: {action: t.t, needs: a}}"))
    next_ = Graph(
        workflow("workflow: a.w\ntasks: {a: {action: t.t, next: [{do: b}]}, b: {action: t.t, join: all}}")
    )
    for one, other in zip(needs.nodes, next_.nodes, strict=True):
        assert (one.sources, one.targets, one.rule, one.early_success) == (
            other.sources,
            other.targets,
            other.rule,
            other.early_success,
        )


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))))
    )
)
def test_either_there_is_an_order_or_a_circle(given: tuple[int, set[tuple[int, int]]]) -> None:
    count, edges = given
    sources: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        sources[target].append(source)
    found = circle(sources)
    if found:
        for here, before in zip(found, [*found[1:], found[0]], strict=True):
            assert before in sources[here]
    else:
        order = topological(sources)
        assert sorted(order) == list(range(count))
        for task, needed in enumerate(sources):
            assert all(order.index(source) < order.index(task) for source in needed)


def test_the_graph_knows_which_task_comes_before_which() -> None:
    graph = Graph(workflow())
    first, left, right, last, mend = range(5)
    assert graph.comes_before(first, last)
    assert graph.comes_before(right, mend)
    assert not graph.comes_before(left, mend)
    assert not graph.comes_before(last, first)


def test_dot_shows_tasks_edges_conditions_and_how_the_run_is_doing() -> None:
    dot = to_dot(Graph(workflow()), {"first": "completed", "right": "running"})
    assert '"first" [label="first", fillcolor="#b7e1cd"];' in dot
    assert '"right" [label="right\\nt.c x items", fillcolor="#fff2b3"];' in dot
    assert '"left" [label="left\\nt.b"];' in dot
    assert '"left" -> "last";' in dot
    assert '"right" -> "mend" [label="failed()"];' in dot
    assert '"on_exit"' in dot


def test_mermaid_shows_the_same() -> None:
    assert to_mermaid(Graph(workflow()), {"first": "completed"}).splitlines() == [
        "flowchart LR",
        '  t_first["first"]',
        '  t_left["left<br>t.b"]',
        '  t_right["right<br>t.c x items"]',
        '  t_last["last<br>t.d"]',
        '  t_mend["mend<br>t.e"]',
        '  t_on_exit["on_exit<br>t.bye"]',
        "  t_first --> t_left",
        "  t_first --> t_right",
        "  t_left --> t_last",
        "  t_right --> t_last",
        '  t_right -->|"failed()"| t_mend',
        "  classDef completed fill:#b7e1cd,stroke:#666",
        "  class t_first completed",
    ]


def test_labels_are_escaped() -> None:
    text = DIAMOND.replace("failed()", '\'"failed() and error.type == \\"<X>\\""\''[1:-1])
    graph = Graph(workflow(text))
    assert 'label="failed() and error.type == \\"<X>\\""' in to_dot(graph)
    assert "failed() and error.type == &quot;&lt;X&gt;&quot;" in to_mermaid(graph)


def test_differences_name_the_task_and_the_option() -> None:
    changed = (
        DIAMOND.replace("x.first", "x.second")
        .replace(
            "  mend: {action: t.e}\n",
            "  mend: {action: t.e}\n  more: {action: t.f, retry: {max_attempts: 2}}\n",
        )
        .replace("[1, 2]", "[1, 3]")
        .replace("on_exit: {action: t.bye}", "timeout: 5")
    )
    assert [str(found) for found in diff(workflow(), workflow(changed))] == [
        "~ tasks.right.with_items: [1, 2] -> [1, 3]",
        "~ tasks.first.action: 'x.first' -> 'x.second'",
        "+ tasks.more: {'action': 't.f', 'retry': {'max_attempts': 2}}",
        "- on_exit: {'action': 't.bye'}",
        "+ timeout: 5",
    ]
    assert not diff(workflow(), workflow())


def test_another_order_of_tasks_is_a_difference() -> None:
    lines = DIAMOND.splitlines()
    swapped = "\n".join([*lines[:3], lines[4], lines[3], *lines[5:]])
    (found,) = diff(workflow(), workflow(swapped))
    assert str(found) == "~ tasks: the order is now left, last, right, mend, first"
    assert workflow().digest != workflow(swapped).digest


@pytest.mark.parametrize("size", [3_000])
def test_a_long_chain_needs_no_deep_stack(size: int) -> None:
    tasks = "\n".join(f"  t{n}: {{action: t.t{f', needs: t{n - 1}' if n else ''}}}" for n in range(size))
    graph = Graph(from_yaml(f"workflow: a.w\ntasks:\n{tasks}"))
    assert graph.comes_before(0, size - 1)
