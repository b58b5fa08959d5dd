"""Workflows written in Python: the same documents as in YAML."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from penstock import (
    ActionRef,
    Workflow,
    all_of,
    context,
    each,
    error,
    event,
    expr,
    fail,
    failed,
    index,
    inquiry,
    item,
    none_of,
    noop,
    on_exit,
    result,
    skipped,
    success,
    system,
    task,
    variables,
    wait_for_event,
    workflow,
)
from penstock.errors import DefinitionError
from penstock.language.definitions import Limit, Pack, action
from penstock.language.policies.policies import RetryPolicy
from penstock.language.workflows import from_yaml, to_yaml
from penstock.testing import Simulation

pack = Pack("shop")
Step = Callable[[], object]


@action
def reserve(order: dict[str, Any]) -> dict[str, Any]:
    return order


@action
def box(parcel: str, n: int = 0) -> str:
    return parcel


@action
def ship(parcels: list[str]) -> str:
    return ",".join(parcels)


@action
def release(order: dict[str, Any], how: str) -> None: ...


def tasks(made: Workflow) -> dict[str, dict[str, Any]]:
    return {task.pop("name"): task for task in made.body()["tasks"]}


def test_a_function_gives_the_same_workflow_as_the_yaml() -> None:
    @workflow(timeout="2h", vars={"note": "none"}, limits=Limit(3))
    def fulfil(order: dict[str, Any], tries: int = 3) -> Any:
        """Fulfils an order."""
        reserved = task(reserve, {"order": order}, retry=RetryPolicy(max_attempts=3), timeout="10s")
        boxes = task(box, {"parcel": each(reserved.parcels, concurrency=tries, tolerate="10%"), "n": index})
        asked = inquiry(
            f"Ship {order['id']}?", schema={"type": "boolean"}, default=False, timeout="1d", name="ask"
        )
        reserved.on("failed() and error.type == 'Gone'", asked, publish={"note": error.message})
        paid = wait_for_event("shop.paid", filter=event.payload.id == order["id"], timeout="2d").after(
            reserved
        )
        shipped = task(
            ship, {"parcels": boxes}, name="ship", when=all_of("all_success", reserved.total > 3), after=paid
        )
        mended = noop({"why": variables.note}).when(failed(shipped)).publish(note=result.why)
        mended.set(name="mended", allow_failure=True)
        on_exit(release, order=order, how=system.status)
        return {"tracking": shipped, "count": boxes | "length"}

    written = from_yaml(
        """
        workflow: shop.fulfil
        description: Fulfils an order.
        parameters: {order: {type: object, required: true}, tries: {type: integer, default: 3}}
        vars: {note: none}
        timeout: 7200
        limits: {max: 3}
        tasks:
          reserve:
            action: shop.reserve
            input: {order: "{{ parameters.order }}"}
            retry: {max_attempts: 3}
            timeout: 10
            next:
              - {when: "failed() and error.type == 'Gone'", publish: {note: "{{ error.message }}"}, do: ask}
          box:
            action: shop.box
            needs: reserve
            with_items: "{{ tasks.reserve.result.parcels }}"
            concurrency: "{{ parameters.tries }}"
            item_failures: {tolerate: 10%}
            input: {parcel: "{{ item }}", n: "{{ index }}"}
          ask:
            inquiry:
              prompt: "Ship {{ parameters.order.id }}?"
              schema: {type: boolean}
              default: false
              timeout: 1d
          wait_for_event:
            wait_for_event: {trigger: shop.paid, filter: (event.payload.id == parameters.order.id), timeout: 2d}
            needs: reserve
          ship:
            action: shop.ship
            needs: [wait_for_event, reserve, box]
            when: {all: [all_success, "{{ (tasks.reserve.result.total > 3) }}"]}
            input: {parcels: "{{ tasks.box.result }}"}
          mended:
            action: noop
            needs: ship
            when: {failed: ship}
            input: {why: "{{ vars.note }}"}
            publish: {note: "{{ result.why }}"}
            allow_failure: true
        output: {tracking: "{{ tasks.ship.result }}", count: "{{ (tasks.box.result | length) }}"}
        on_exit: {action: shop.release, input: {order: "{{ parameters.order }}", how: "{{ system.status }}"}}
        """
    )
    assert fulfil.body() == written.body()
    assert fulfil.digest == written.digest == from_yaml(to_yaml(fulfil)).digest


def test_a_workflow_called_in_another_is_a_sub_workflow_and_names_are_kept_apart() -> None:
    @workflow
    def inner(n: int) -> Any:
        return noop({"n": n})

    @workflow
    def outer(n: int) -> Any:
        first = inner(n=n)
        return inner(n=first.n + 1)

    assert tasks(outer) == {
        "inner": {"workflow": "shop.inner", "input": {"n": "{{ parameters.n }}"}},
        "inner_2": {
            "workflow": "shop.inner",
            "input": {"n": "{{ (tasks.inner.result.n + 1) }}"},
            "needs": ["inner"],
        },
    }
    with pytest.raises(DefinitionError, match="is not a function"):
        outer(n=1)


def test_call_of_a_reference_adds_a_task_as_of_an_action() -> None:
    fetch = ActionRef("web.fetch")

    @workflow
    def mirror(url: str) -> Any:
        page = fetch(url=url)
        return fetch(url=page.next)

    assert tasks(mirror) == {
        "fetch": {"action": "web.fetch", "input": {"url": "{{ parameters.url }}"}},
        "fetch_2": {
            "action": "web.fetch",
            "input": {"url": "{{ tasks.fetch.result.next }}"},
            "needs": ["fetch"],
        },
    }
    with pytest.raises(DefinitionError, match=r"test_workflow_decorator\.py:\d+: .*web\.fetch") as refused:
        fetch(url="x")
    assert "http_action" in (refused.value.hint or "")
    with pytest.raises(DefinitionError, match=r"<reference to web\.fetch> takes its parameters by name"):

        @workflow
        def unnamed(url: str) -> Any:
            return fetch(url)


def test_references_write_themselves_as_expressions() -> None:
    @workflow(vars={"a": {"b": [1]}})
    def flow(p: Any) -> Any:
        first = task("x.y", {"p": p["a b"].c[0]["d"], "s": p.list[1:3]})
        return {
            "arithmetic": (first.n + 1) * 2 - 3 / first.m,
            "logic": (first.ok & ~first.bad) | (variables.a.b[0] == 1),
            "filtered": first.names | "sort | first",
            "text": f"{first.day}/{first['my-key']}.csv",
            "nested": [{"deep": first}, "plain", None, 1.5],
            "swapped": 1 - first.n,
            "compared": first.s != "a'\"b",
            "written": expr("{{ tasks['y'].result.z }}"),
            "all": context,
        }

    assert flow.output == {
        "arithmetic": "{{ (((tasks.y.result.n + 1) * 2) - (3 / tasks.y.result.m)) }}",
        "logic": "{{ ((tasks.y.result.ok and (not tasks.y.result.bad)) or (vars.a.b[0] == 1)) }}",
        "filtered": "{{ (tasks.y.result.names | sort | first) }}",
        "text": '{{ tasks.y.result.day }}/{{ tasks.y.result["my-key"] }}.csv',
        "nested": [{"deep": "{{ tasks.y.result }}"}, "plain", None, 1.5],
        "swapped": "{{ (1 - tasks.y.result.n) }}",
        "compared": '{{ (tasks.y.result.s != "a\'\\"b") }}',
        "written": "{{ tasks['y'].result.z }}",
        "all": "{{ context }}",
    }
    assert tasks(flow)["y"]["input"] == {
        "p": '{{ parameters.p["a b"].c[0].d }}',
        "s": "{{ parameters.p.list[1:3] }}",
    }


def test_each_is_found_wherever_the_item_is_used() -> None:
    @workflow
    def flow(files: list[Any]) -> None:
        one = each(files, concurrency=2, batch_size=3, then="stop")
        task(box, {"parcel": one}, name="plain")
        task(box, {"parcel": {"deep": [one.path]}}, name="deep")
        task(box, {"parcel": f"{one.path}.gz"}, name="text")
        task(box, {"parcel": one.n + 1}, name="sum")
        task(box, {"parcel": 1 + one.n}, name="swapped")
        task(box, {"parcel": item.path}, name="by_hand", with_items=[1, 2])
        task(box, {"parcel": "none"}, name="without")

    fan = {
        "with_items": "{{ parameters.files }}",
        "concurrency": 2,
        "batch_size": 3,
        "item_failures": {"then": "stop"},
    }
    found = tasks(flow)
    for name in ("plain", "deep", "text", "sum"):
        assert fan.items() <= found[name].items(), name
    assert found["text"]["input"] == {"parcel": "{{ item.path }}.gz"}
    assert found["by_hand"]["with_items"] == [1, 2]
    assert "with_items" not in found["without"]


@pytest.mark.parametrize(
    ("misuse", "said"),
    [
        (lambda t: bool(t.x > 1), r"whether {{ \(tasks.y.result.x > 1\) }} is true is only known when"),
        (lambda t: list(t), "what is in {{ tasks.y.result }} is only known when"),
        (lambda t: len(t), "how long {{ tasks.y.result }} is"),
        (lambda t: "a" in t, "what is in {{ tasks.y.result }}"),
        (lambda t: t.x(), "cannot be called"),
        (lambda t: f"{t:>8}", "{{ tasks.y.result }} cannot have the format `:>8`"),
        (lambda t: "{:.2f}".format(t.x), r"{{ tasks.y.result.x }} cannot have the format `:.2f`"),  # noqa: UP032
        (lambda t: int(t), r"int\(\.\.\.\) of {{ tasks.y.result }} is only known when"),
        (lambda t: float(t.x), r"float\(\.\.\.\) of {{ tasks.y.result.x }} is only known when"),
        (lambda t: complex(t), r"complex\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: range(t), "the number of {{ tasks.y.result }}"),
        (lambda t: round(t, 2), r"round\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: abs(t), r"abs\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: math.floor(t), r"floor\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: math.ceil(t), r"ceil\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: math.trunc(t), r"trunc\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: bytes(t), r"bytes\(\.\.\.\) of {{ tasks.y.result }}"),
        (lambda t: "%d" % t, r"{{ tasks.y.result }} is only known when"),  # noqa: UP031
        (lambda t: t == object(), "a object cannot stand in an expression"),
        (lambda t: task(3), "is neither an action nor a workflow"),
        (lambda t: task("x.y", {"a": each([1]), "b": each([2])}), "two each"),
        (lambda t: list(map(on_exit, ["a.b", "a.c"])), "on_exit is called twice"),
    ],
)
def test_misuse_of_an_unknown_value_is_reported_with_its_line(
    misuse: Callable[[Any], Any], said: str
) -> None:
    def flow() -> Any:
        t = task("x.y")
        return misuse(t)

    with pytest.raises(DefinitionError, match=rf"test_workflow_decorator\.py:\d+: .*{said}"):
        workflow(flow)


def test_hints_of_refused_numbers_are_expressions() -> None:
    @action(pack="numbers")
    async def numbers() -> Any:
        return {"text": "7", "half": 2.567, "below": -3}

    @workflow(pack="numbers")
    def converted() -> Any:
        got = numbers()
        return {
            "int": got.text | "int",
            "float": got.text | "float",
            "round": got.half | "round(2)",
            "floor": got.half // 1,
            "ceil": -(-got.half // 1),
            "abs": got.below | "abs",
            "string": got.half | "string",
            "part": "is " + str(got.half),
        }

    assert Simulation(numbers).run(converted).result == {
        "int": 7,
        "float": 7.0,
        "round": 2.57,
        "floor": 2.0,
        "ceil": 3.0,
        "abs": 3,
        "string": "2.567",
        "part": "is 2.567",
    }


def test_problems_are_told_at_the_line_of_the_call() -> None:
    def flow() -> None:
        task("x.y", name="a")
        task("x.y", {"v": variables.no}, name="b")

    line = flow.__code__.co_firstlineno + 2
    with pytest.raises(
        DefinitionError,
        match=rf"test_workflow_decorator\.py:{line}: workflow shop\.flow: tasks\.b\.input: no task publishes",
    ):
        workflow(flow)


def test_steps_outside_of_a_workflow_function_are_refused() -> None:
    steps: list[Step] = [noop, lambda: fail("x"), lambda: task(reserve), lambda: wait_for_event("a.b")]
    for step in steps:
        with pytest.raises(DefinitionError, match="none is being described here"):
            step()
    with pytest.raises(DefinitionError, match="is a coroutine"):

        @workflow
        async def flow() -> None: ...

    with pytest.raises(DefinitionError, match="belongs to no pack"):
        exec("@workflow\ndef flow(): pass", {"workflow": workflow})


def test_rules_take_tasks() -> None:
    @workflow
    def flow() -> None:
        a = task("x.y", name="a")
        b = task("x.y", name="b")
        task("x.y", name="c", when=all_of(success(a), none_of(failed(b), skipped("b")), "{{ context.z }}"))
        fail("no", name="d", when="one_failed", after=[a, b])

    found = tasks(flow)
    assert found["c"] == {
        "action": "x.y",
        "needs": ["a", "b"],
        "when": {"all": [{"success": "a"}, {"none": [{"failed": "b"}, {"skipped": "b"}]}, "{{ context.z }}"]},
    }
    assert found["d"] == {
        "action": "fail",
        "needs": ["a", "b"],
        "when": "one_failed",
        "input": {"message": "no"},
    }
