"""The inbox of a workflow at one time is taken in order, and all that follows is written together."""

from __future__ import annotations

from penstock.engine import ChildEnded, Command, Inbox, KeptTask
from penstock.language.workflows.serialization import from_yaml
from penstock.testing.memory_workflow import MemoryWorkflow as World
from tests.penstock.engine.written import names, run

TWO = """
    a: {action: t.a}
    b: {action: t.b, needs: a}
    c: {action: t.c, needs: b}
"""


def test_a_new_workflow_begins_and_follows_its_commands() -> None:
    world = World(from_yaml("workflow: t.w\ntasks:\n  a: {action: t.a}\n  b: {action: t.b, needs: a}"))
    turn = world.take_turn(Inbox(commands=[Command(1, "pause"), Command(2, "skip", "b")]))
    assert names(world) == ["a"]
    assert (turn.state.paused, turn.paused, turn.refused) == (True, True, {})
    assert world.statuses["b"] == "skipped"


def test_ends_come_before_commands_and_commands_before_a_stop() -> None:
    world = run(TWO)
    inbox = Inbox(
        [ChildEnded(0, "completed")],
        [Command(1, "set_result", "b", 7)],
        stops=1,
        stop_status="cancelled",
        stop_reason="enough",
    )
    turn = world.take_turn(inbox)
    assert [[start.name for start in decision.starts] for decision in turn.decisions] == [["b"], ["c"], []]
    assert turn.cancels == [({1}, False), (None, False)]
    assert turn.state.stops == 1
    assert not turn.only_starts


def test_a_task_that_a_turn_starts_and_cancels_starts_first() -> None:
    world = run(TWO)
    inbox = Inbox([ChildEnded(0, "completed")], [Command(1, "set_result", "b", 7)])
    before, after = world.take_turn(inbox).starts
    assert ([start.name for start in before], [start.name for start in after]) == (["b"], ["c"])


def test_a_command_that_is_refused_changes_nothing_and_says_why() -> None:
    world = run(TWO)
    turn = world.take_turn(
        Inbox(commands=[Command(1, "skip", "nobody"), Command(2, "dance", "a"), Command(3, "skip", "a")])
    )
    assert turn.refused == {1: "t.w has no task 'nobody'", 2: "'dance' is not a command of a workflow"}
    assert world.statuses["a"] == "skipped"


def test_a_stop_is_followed_once_however_often_the_workflow_is_advanced() -> None:
    world = run(TWO)
    inbox = Inbox(stops=1, stop_status="timeout", stop_reason="too long")
    assert world.take_turn(inbox).cancels == [(None, False)]
    assert world.take_turn(inbox).cancels == []
    turn = world.take_turn(Inbox([ChildEnded(0, "cancelled")], (), 1, "timeout", "too long"))
    assert turn.final is not None
    assert (turn.final.status, turn.final.error) == ("timeout", {"type": "timeout", "message": "too long"})


def test_an_ordinary_turn_only_starts() -> None:
    turn = run(TWO).take_turn(Inbox([ChildEnded(0, "completed")]))
    assert turn.only_starts
    assert (turn.paused, turn.final, turn.more_due) == (None, None, False)
    assert set(turn.tasks) == {0, 1}


def test_a_rerun_begins_with_kept_tasks_and_tasks_see_the_run() -> None:
    text = "workflow: t.w\ntasks:\n  a: {action: t.a}\n  b: {action: t.b, needs: a, input: {run: '{{ system.id }}'}}"
    world = World(from_yaml(text), kept_tasks={0: KeptTask("completed")})
    world.take_turn(Inbox())
    assert names(world) == ["b"]
    assert world.input("b") == {"run": "run-1"}


def test_a_task_that_started_early_ends_together_with_one_that_it_did_not_wait_for() -> None:
    world = run("""
        a: {action: t.a}
        b: {action: t.b}
        c: {action: t.c, needs: [a, b], join: any}
        d: {action: t.d, needs: c}
    """)
    world.finish(("a",))
    world.finish(("b",), ("c",))
    assert names(world) == ["d"]
