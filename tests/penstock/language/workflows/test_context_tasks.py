"""Tasks that hand a context on: each changes it, and those after it see the changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock import Context, task, workflow
from penstock.errors import DefinitionError, InvalidInput
from penstock.language.definitions import Pack
from penstock.testing.memory_workflow import MemoryWorkflow as World

pack = Pack("shop")


@task(dependencies=[])
async def extract(context: Context) -> str:
    context["rows"] = [context["day"], 2]
    return "two rows"


@task(
    dependencies=[extract],
    trigger_rule={"context": "rows", "op": "!=", "value": []},
    retry={"max_attempts": 3},
)
def load(context: Context) -> None:
    context["rows"].append(3)
    context.insert("loaded", True)


def test_context_tasks_make_a_workflow_that_hands_the_context_on() -> None:
    etl = workflow("etl", tasks=[load, extract])
    assert etl.ref == "shop.etl"
    assert load.choices.retry.max_attempts == 3
    world = World(etl, {"day": 1}).begin()
    for one in (extract, load):
        given = world.input(one.name)
        changes = run_here(one, given)
        world.finish((one.name, changes))
    assert world.final is not None
    assert world.final.output == {"day": 1, "rows": [1, 2, 3], "loaded": True}
    assert world.input("load") == {"context": {"day": 1, "rows": [1, 2]}}


def run_here(one: Any, params: dict[str, Any]) -> dict[str, Any]:
    answer = one.function(**one.bind(params))
    return asyncio.run(answer) if one.is_coroutine else answer


def test_a_context_knows_its_changes_and_keeps_stored_values() -> None:
    values = Context({"a": [1], "b": {"c": 1}, "n": 1, "t": True})
    values["a"].append(2)
    values["n"] = 1
    values["t"] = 1
    values.update(new=None)
    assert values.changes == {"a": [1, 2], "t": 1, "new": None}
    assert "b" in values
    assert len(values) == 5
    with pytest.raises(KeyError, match="is in the context already"):
        values.insert("a", 1)
    with pytest.raises(TypeError, match="set it to None"):
        del values["a"]
    with pytest.raises(TypeError, match="a name in the context is text"):
        values[1] = 2  # type: ignore[index]


def test_returned_context_keeps_the_context() -> None:
    @task(ref="shop.kept")
    def kept(context: Context) -> Context:
        context.set("rows", 1)
        return context

    @task(ref="shop.other")
    def other(context: Context) -> Context:
        return Context({**context, "more": 2})

    assert run_here(kept, {"context": {"day": 1}}) == {"changes": {"rows": 1}, "value": None}
    assert run_here(other, {"context": {"day": 1}}) == {"changes": {"more": 2}, "value": None}


def test_words_of_cloacina_make_the_same_record() -> None:
    def shared(context: Context) -> None: ...

    theirs = task(
        id="load",
        dependencies=["extract"],
        trigger_rules={"type": "All", "conditions": [{"type": "TaskSuccess", "value": "extract"}]},
        retry_attempts=3,
        retry_delay_ms=500,
        retry_max_delay="10s",
        retry_backoff="fixed",
        retry_jitter=False,
    )(shared)
    ours = task(
        ref="load",
        dependencies=[extract],
        trigger_rule={"all": [{"success": "extract"}]},
        retry={"max_attempts": 3, "initial_delay": 0.5, "max_delay": 10, "backoff": "fixed", "jitter": 0},
    )(shared)
    assert theirs.body() == ours.body()
    assert theirs.task() == ours.task()
    digests = {workflow("shop.flow", tasks=[extract, made]).digest for made in (theirs, ours)}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"retry_attempts": 3, "retry": 3}, "retry_attempts: stands beside retry"),
        ({"retry_delay": 1, "retry_delay_ms": 1}, "says initial_delay again"),
        ({"retry_condition": "transient"}, "which errors to retry"),
        ({"retry_condition": "never", "retry_attempts": 3}, "does nothing beside"),
        ({"retry_delay_ms": "1s"}, "is not a number of milliseconds"),
        ({"retry_attempts": 0}, "greater than or equal to 1"),
        ({"id": "a.b"}, "is not the id of a task"),
        ({"id": "a", "ref": "shop.a"}, "has an id and a ref"),
        ({"dependencies": [print]}, "which is not a task"),
        ({"trigger_rule": "all_done", "trigger_rules": "all_done"}, "has trigger_rule and trigger_rules"),
    ],
)
def test_word_without_a_meaning_is_refused(options: dict[str, Any], word: str) -> None:
    def plain(context: Context) -> None: ...

    with pytest.raises(DefinitionError, match=word):
        task(**options)(plain)


def test_function_becomes_the_callback_of_its_task() -> None:
    calls: list[Any] = []

    def note(task_id: str, context: Context) -> None:
        calls.append((task_id, dict(context)))

    def alert(task_id: str, error: str, context: Context) -> Context:
        calls.append((task_id, error, dict(context)))
        return context

    @task(id="followed", on_success=note, on_failure=[alert, "shop.page_somebody"])
    def followed(context: Context) -> None: ...

    noted, alerted = followed.callbacks
    assert followed.choices.on_success == ("shop.followed_on_success",)
    assert followed.choices.on_failure == ("shop.followed_on_failure", "shop.page_somebody")
    assert followed.body()["local_callbacks"] == [noted.ref, alerted.ref]
    assert list(followed.parts()) == [followed, noted, alerted]
    ended = {"execution": "x", "status": "completed", "parameters": {"context": {"day": 1}}, "error": None}
    run_here(noted, {**ended, "result": {"changes": {"rows": 2}, "value": None}})
    error = {"type": "ValueError", "message": "no rows"}
    assert run_here(alerted, {**ended, "status": "failed", "result": None, "error": error}) is None
    assert calls == [("followed", {"day": 1, "rows": 2}), ("followed", "no rows", {"day": 1})]
    with pytest.raises(InvalidInput, match="starts only at the end of its task"):
        noted.bind({"execution": "x", "status": "completed"})


def test_callback_with_other_arguments_is_refused() -> None:
    def alert(task_id: str) -> None: ...

    def plain(context: Context) -> None: ...

    with pytest.raises(DefinitionError, match="does not take task_id, error, context"):
        task(on_failure=alert)(plain)
