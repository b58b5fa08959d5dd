"""Options of other systems: each is refused with a hint, and what the hint says to write is taken."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from penstock import (
    Limit,
    MissedFires,
    RetryPolicy,
    Rule,
    Schedule,
    Timeouts,
    Trigger,
    action,
    task,
    workflow,
)
from penstock.errors import ConfigurationError, DefinitionError
from penstock.language.definitions.trigger import Poll
from penstock.language.terms.aliases import ALIASES, PAGES, SETTINGS, Alias, alias_hint
from penstock.language.workflows.serialization import from_yaml
from penstock.language.workflows.workflow_decorator import workflow as workflow_of
from penstock.service import environment
from penstock.settings import Settings
from tests.seeds.documents import ROOT


def work(order: int = 1) -> int:
    return order


def _schedule(**options: Any) -> object:
    timing = options.keys() & {"cron", "every", "at", "rrule"}
    return Schedule(**{"ref": "a.b", "action": "a.c", **({} if timing else {"cron": "0 2 * * *"}), **options})


def _limit(**options: Any) -> object:
    rest = {} if options.keys() & {"max", "rate"} else {"max": 1}
    if "scope" in options and "ref" not in options:
        options = {**options, "ref": "a.b"}
    return Limit(**{**rest, **options})


def _task(**options: Any) -> object:
    others = [task(ref="a.extract")(lambda context: None)] if options.get("dependencies") else []
    made = task(**{"pack": "a", **options})(of_context)
    return workflow("a.flow", tasks=[*others, made])


def of_context(context: Any) -> None: ...


def _step(**options: Any) -> object:
    steps = {
        "extract": {"action": "a.extract"},
        "t": {"action": "a.t", **options},
    }
    targets = {name for way in options.get("next", ()) for name in way.get("do", ())}
    steps |= {name: {"action": "a.load"} for name in targets}
    if "when" in options:
        steps["t"]["needs"] = ["extract"]
    return from_yaml(
        json.dumps(
            {"workflow": "a.flow", "parameters": {"items": {"type": "array"}, "day": {}}, "tasks": steps}
        )
    )


def _workflow(**options: Any) -> object:
    first = task(ref="a.first")(of_context)
    return workflow_of("a.flow", tasks=[first], **options)


def _action(**options: Any) -> object:
    return action(**{"ref": "a.work", **options})(work)


def _ours(kind: Callable[..., object], **fixed: Any) -> Callable[..., object]:
    return lambda **options: kind(**{**fixed, **options})


THINGS: Mapping[str, Callable[..., object]] = {
    "retry": RetryPolicy,
    "timeouts": Timeouts,
    "action": _action,
    "task": _task,
    "step": _step,
    "workflow": _workflow,
    "rule": _ours(Rule, ref="a.b", trigger="a.t", action="a.c"),
    "schedule": _schedule,
    "limit": _limit,
    "trigger": _ours(Trigger, ref="a.t"),
    "poll": _ours(Poll, every=1),
    "missed": MissedFires,
}
WORDS = [(thing, word, alias) for thing, words in ALIASES.items() for word, alias in words.items()]


@pytest.mark.parametrize(
    ("thing", "word", "alias"), WORDS, ids=[f"{thing}-{word}" for thing, word, _ in WORDS]
)
def test_word_is_refused_and_its_hint_is_taken(thing: str, word: str, alias: Alias) -> None:
    hint = alias_hint(thing, word)
    assert hint is not None
    with pytest.raises(DefinitionError) as refusal:
        THINGS[thing](**{word: "anything"})
    whole = f"{refusal.value.message} {refusal.value.hint}"
    assert f"{word}: unknown option" in whole
    assert hint in whole
    assert alias.options or alias.advice
    THINGS[thing](**alias.options)  # what it says to write is taken


def test_page_of_each_system_is_there() -> None:
    assert {system for _, _, alias in WORDS for system in alias.systems} <= PAGES.keys()
    assert [page for page in PAGES.values() if not (ROOT / page).is_file()] == []


def test_several_words_each_have_their_hint() -> None:
    with pytest.raises(DefinitionError) as refusal:
        _action(max_retries=3, queue="heavy", wen=1)
    lines = refusal.value.message.splitlines()
    assert [line.partition(": unknown option. ")[2].partition(".")[0] for line in lines] == [
        "Write retry={'max_attempts': 3}; in YAML retry: {max_attempts: 3}",
        "Write route='heavy'; in YAML route: heavy",
        lines[2].partition(": unknown option. ")[2].partition(".")[0],
    ]
    assert "3 problems were found" in str(refusal.value.hint)


def test_hint_lists_options_of_the_thing_that_was_written() -> None:
    with pytest.raises(DefinitionError) as of_task:
        task(pack="a", zzz=1)(of_context)
    assert "dependencies" in str(of_task.value.hint)
    assert "with_items" not in str(of_task.value.hint)
    with pytest.raises(DefinitionError) as of_step:
        _step(zzz=1)
    assert "needs" in str(of_step.value.hint)
    assert "dependencies" not in str(of_step.value.hint)


@pytest.mark.parametrize("word", SETTINGS)
def test_setting_is_refused_with_the_setting_of_ours(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"PENSTOCK_{word}", "1")
    with pytest.raises(ConfigurationError) as refusal:
        environment.load()
    system, advice = SETTINGS[word]
    assert advice in str(refusal.value.hint)
    assert PAGES[system] in str(refusal.value.hint)
    named = [part.strip(".:,") for part in advice.split() if part.startswith("PENSTOCK_")]
    assert all(name.removeprefix("PENSTOCK_").lower() in Settings.model_fields for name in named)
