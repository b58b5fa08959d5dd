"""with_items: an execution an item, so many at a time."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.engine import begin
from penstock.engine import fan_out as engine_fan_out
from penstock.engine.decision import ChildEnded
from penstock.engine.facts import Facts
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import names, run

FAN = """
    f:
      action: t.f
      with_items: "{{ parameters.items }}"
      input: {what: "{{ item }}", n: "{{ index }}"}
      %s
    g: {action: t.g, needs: f, input: {all: "{{ tasks.f.result }}"}}
"""


def fan(options: str = "delay: 1", items: Any = ("a", "b", "c", "d", "e")) -> World:
    return run(FAN % options, items=list(items) if isinstance(items, tuple) else items)


def test_each_item_has_its_execution_and_results_come_in_item_order() -> None:
    world = fan()
    assert names(world) == ["f0", "f1", "f2", "f3", "f4"]
    assert world.input("f", 2) == {"what": "c", "n": 2}
    world.finish((("f", 3), "D"), (("f", 0), "A"), (("f", 4), "E"))
    world.finish((("f", 2), "C"), (("f", 1), "B"))
    assert world.input("g") == {"all": ["A", "B", "C", "D", "E"]}


def test_an_empty_list_completes_at_once() -> None:
    world = fan(items=[])
    assert names(world) == ["g"]
    assert world.input("g") == {"all": []}


def test_concurrency_is_a_window_that_moves_on_in_order() -> None:
    world = fan("concurrency: 2")
    assert names(world) == ["f0", "f1"]
    assert names(world.finish((("f", 1), 1))) == ["f0", "f2"]
    assert names(world.finish((("f", 0), 1), (("f", 2), 1))) == ["f3", "f4"]


def test_an_item_that_is_told_twice_opens_the_window_once() -> None:
    world = fan("concurrency: 2").finish((("f", 0), 1), (("f", 0), 1))
    assert names(world.finish((("f", 0), 1))) == ["f1", "f2"]
    world.finish((("f", 1), 1), (("f", 1), 1))
    assert names(world.finish((("f", 1), 1))) == ["f2", "f3"]


def test_an_item_that_failed_is_counted_once_however_often_it_is_told() -> None:
    world = fan("item_failures: {tolerate: 1}").finish((("f", 0), "failed", None), (("f", 0), "failed", None))
    world.finish((("f", 0), "failed", None)).finish(*((("f", n), n) for n in range(1, 5)))
    assert world.input("g") == {"all": [None, 1, 2, 3, 4]}


def test_concurrency_may_be_an_expression_and_has_to_make_sense() -> None:
    assert len(fan('concurrency: "{{ parameters.items | length - 2 }}"').open) == 3
    world = fan('concurrency: "{{ parameters.items | length - 5 }}"')
    assert world.statuses["f"] == "failed"
    assert world.final is not None
    assert "concurrency: it gives 0" in str(world.final.error)


def test_batches_hand_over_several_items_at_a_time() -> None:
    world = fan("batch_size: 2")
    assert [world.input("f", n)["what"] for n in range(3)] == [["a", "b"], ["c", "d"], ["e"]]


@pytest.mark.parametrize("items", [3, "text", {"a": 1}, None])
def test_items_that_are_not_a_list_fail_the_task(items: Any) -> None:
    world = fan(items=items)
    assert world.final is not None
    assert "with_items: its value has the type " in str(world.final.error)


def test_by_default_one_failed_item_fails_the_task_after_all_have_ended() -> None:
    world = fan("concurrency: 1")
    for n in range(5):
        world.finish((("f", n), "failed" if n == 1 else "completed", n))
    assert world.final is not None
    assert world.final.error is not None
    assert world.final.error["message"] == "f: ItemsFailed: 1 of 5 items failed: item 1: 1"


def test_as_many_failures_as_are_tolerated_leave_nulls_in_the_result() -> None:
    for tolerate in ("2", '"40%"'):
        world = fan(f"item_failures: {{tolerate: {tolerate}}}")
        world.finish(*((("f", n), "failed" if n in (1, 3) else "completed", n) for n in range(5)))
        assert world.input("g") == {"all": [0, None, 2, None, 4]}
    world = fan('item_failures: {tolerate: "39%"}')
    world.finish(*((("f", n), "failed" if n in (1, 3) else "completed", n) for n in range(5)))
    assert world.statuses["f"] == "failed"


def test_stop_starts_no_more_items_and_cancel_ends_those_that_run() -> None:
    world = fan("concurrency: 2\n      item_failures: {then: stop}")
    assert names(world.finish((("f", 0), "failed", None))) == ["f1"]
    assert not world.decision.cancel
    world.finish((("f", 1), 1))
    assert world.final is not None
    assert "1 of 5 items failed, 3 were not started: item 0: failed" in str(world.final.error)

    world = fan("concurrency: 2\n      item_failures: {then: cancel}").finish((("f", 0), "failed", None))
    assert world.decision.cancel == {world.plan.index("f")}
    world.finish((("f", 1), "cancelled", None))
    assert world.statuses["f"] == "failed"


def test_an_item_whose_input_is_in_error_has_failed_without_an_execution() -> None:
    world = run(
        "f: {action: t.f, with_items: [2, 0, 1], input: {n: '{{ 4 // item }}'}, item_failures: {tolerate: 1}}"
    )
    assert names(world) == ["f0", "f2"]
    world.finish((("f", 0), 1), (("f", 2), 1))
    assert world.statuses["f"] == "completed"
    world = run("f: {action: t.f, with_items: [0, 0], input: {n: '{{ 4 // item }}'}}")
    assert world.final is not None
    assert "task `f`, input: `n` = `{{ 4 // item }}`" in str(world.final.error)


def test_a_skipped_item_is_no_failure() -> None:
    world = fan().finish(*((("f", n), "skipped" if n == 1 else "completed", n) for n in range(5)))
    assert world.input("g") == {"all": [0, None, 2, 3, 4]}


def test_a_decision_starts_no_more_than_its_budget_and_asks_to_go_on() -> None:
    world = World(fan().plan.workflow, {"items": list(range(10))}, budget=4)
    starts: list[int] = []
    original = world._decide

    def counting(steps: Any, facts: Facts) -> None:
        original(steps, facts)
        starts.append(len(world.decision.starts))

    world._decide = counting  # type: ignore[method-assign]
    world.begin()
    assert starts == [4, 4, 2]
    assert len(world.open) == 10


def test_the_cost_of_an_end_does_not_grow_with_the_items() -> None:
    def asked(total: int) -> list[Any]:
        world = fan("concurrency: 10", items=list(range(total)))
        world.rounds.clear()
        world.finish(*((("f", n), n) for n in range(5)))
        assert len(world.decision.starts) == 5
        return world.rounds

    assert asked(1_000) == asked(50)


def test_many_items_in_one_batch_are_one_look_at_the_items_to_come() -> None:
    world = fan("concurrency: 100", items=list(range(1_000)))
    world.rounds.clear()
    world.finish(*((("f", n), n) for n in range(100)))
    assert [needed.items for needed in world.rounds] == [{}, {0: (100, 200)}]


def test_a_change_of_an_item_that_never_was_is_ignored() -> None:
    world = fan("concurrency: 1")
    world.advance(
        [ChildEnded(0, "completed", 3), ChildEnded(0, "completed", 900), ChildEnded(0, "completed")]
    )
    assert names(world) == ["f0"]
    assert world.tasks[0].fan is not None
    assert world.tasks[0].fan.ended == 0


@pytest.mark.parametrize(
    ("options", "stored"), [("delay: 1", False), ("concurrency: 2", True), ("concurrency: 5", False)]
)
def test_items_are_stored_only_where_some_start_later(options: str, stored: bool) -> None:
    assert bool(fan(options).items) is stored


def test_items_of_which_none_starts_any_more_are_not_stored() -> None:
    world = run(
        "f: {action: t.f, with_items: [0, 1, 2], concurrency: 1, input: {n: '{{ 4 // item }}'}, item_failures: {then: stop}}"
    )
    assert world.statuses["f"] == "failed"
    assert world.items == {}


def test_items_may_come_from_a_published_list_and_see_it() -> None:
    world = run(
        """
        a: {action: t.a, publish: {some: "{{ result }}"}}
        z: {action: t.z, publish: {some: "{{ result }}"}}
        f: {action: t.f, needs: a, with_items: "{{ vars.some }}", input: {of: "{{ vars.some | length }}"}}
        """
    ).finish(("z", [1, 2, 3]), ("a", [7, 8]))
    assert names(world) == ["f0", "f1"]
    assert [world.input("f", n) for n in (0, 1)] == [{"of": 2}, {"of": 2}]


def test_an_item_sees_values_of_an_end_of_the_same_batch() -> None:
    world = run(
        """
        a: {action: t.a}
        b: {action: t.b, publish: {x: "{{ result }}"}}
        f:
          action: t.f
          needs: [a, b]
          when: one_success
          with_items: [1, 2, 3]
          concurrency: 1
          input: {x: "{{ vars.x | default(0) }}"}
        """
    ).finish(("a", 1))
    world.finish((("f", 0), 1), ("b", 5), (("f", 1), 1))
    assert [world.input("f", n)["x"] for n in range(3)] == [0, 0, 5]


def test_the_last_item_of_a_budget_is_not_forgotten() -> None:
    world = World(fan().plan.workflow, {"items": list(range(5))}, budget=4).begin()
    assert len(world.open) == 5


def test_an_item_that_has_not_begun_cannot_end() -> None:
    world = fan("concurrency: 1").advance([ChildEnded(0, "completed", 1)])
    assert world.tasks[0].fan is not None
    assert world.tasks[0].fan.ended == 0


def test_as_many_failures_as_are_tolerated_stop_nothing() -> None:
    world = fan("concurrency: 1\n      item_failures: {then: stop, tolerate: 1}")
    assert names(world.finish((("f", 0), "failed", None))) == ["f1"]
    world.finish((("f", 1), "failed", None))
    assert world.statuses["f"] == "failed"


@pytest.mark.parametrize("window", ["{{ true }}", "{{ false }}", "{{ 'two' }}", "{{ 1.5 }}", "{{ 0 }}"])
def test_a_window_is_a_number_from_one_on(window: str) -> None:
    world = fan(f'concurrency: "{window}"')
    assert world.final is not None
    assert "task `f`, concurrency: it gives" in str(world.final.error)


def test_a_list_may_be_as_long_as_the_bound_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_fan_out, "MAX_ITEMS", 5)
    assert len(fan().open) == 5
    world = fan(items=list(range(6)))
    assert "6 items are more than 5" in str(world.tasks[0].error)
    assert len(fan("batch_size: 2", items=list(range(10))).open) == 5


def test_a_fan_out_that_a_budget_cut_short_waits_once() -> None:
    world = World(fan().plan.workflow, {"items": list(range(5))}, budget=2)
    facts = Facts()
    world._decide(begin(world.plan, facts, world.system, budget=2), facts)
    assert list(world.state.due) == [0]
    world.pause()
    world.finish((("f", 0), 1))
    assert list(world.state.due) == [0]
