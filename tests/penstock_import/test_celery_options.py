"""Retries of tasks are those that Celery makes: each task here is run by Celery itself, and by a simulation of ours."""

from __future__ import annotations

import ast
from typing import Any
from unittest.mock import Mock

import pytest
from celery import Celery
from celery.worker.consumer import Consumer

from penstock import Retry, RetryPolicy
from penstock_import.celery_calls import task_decorator
from penstock_import.celery_options import rate_limit, retry_of

OPTIONS = (
    "",
    "max_retries=5",
    "max_retries=5, default_retry_delay=30",
    "autoretry_for=(KeyError,)",
    "autoretry_for=(KeyError,), max_retries=1",
    "autoretry_for=(KeyError,), max_retries=0",
    "autoretry_for=(LookupError,), max_retries=2, default_retry_delay=7",
    "autoretry_for=(ValueError,), max_retries=2",
    "autoretry_for=(Exception,), dont_autoretry_for=(KeyError,), max_retries=2",
    "autoretry_for=(Exception,), dont_autoretry_for=(ValueError,), max_retries=2",
    "autoretry_for=(KeyError,), retry_kwargs={'max_retries': 2}",
    "autoretry_for=(KeyError,), retry_kwargs={'max_retries': 2, 'countdown': 4}",
    "autoretry_for=(KeyError,), retry_backoff=True, retry_jitter=False, max_retries=5",
    "autoretry_for=(KeyError,), retry_backoff=3, retry_jitter=False, max_retries=5",
    "autoretry_for=(KeyError,), retry_backoff=100, retry_backoff_max=150, retry_jitter=False, max_retries=3",
    "autoretry_for=(KeyError,), retry_backoff=False, max_retries=2",
    "retry_backoff=True, max_retries=4",
    "throws=(KeyError,), autoretry_for=(KeyError,), max_retries=1",
    "autoretry_for=[KeyError, ValueError], max_retries=1",
    "autoretry_for=(KeyError,), max_retries=3, default_retry_delay=1",
)
"""The options of tasks that always raise KeyError."""


def delays_of_celery(options: str) -> list[float]:
    """Return the pauses before each further try of a task that always fails."""
    app = Celery("t", broker="memory://")
    app.conf.task_always_eager = True
    delays: list[float] = []
    runs: list[int] = []

    def fails(self: Any) -> None:
        runs.append(1)
        raise KeyError("no")

    name = f"fails_{OPTIONS.index(options)}"
    eval(f"app.task(bind=True, shared=False, name='{name}', {options})", {"app": app, "KeyError": KeyError})(
        fails
    )
    task = app.tasks[name]
    signature_from_request = type(task).signature_from_request

    def noted(
        self: Any, request: Any = None, args: Any = None, kwargs: Any = None, queue: Any = None, **extra: Any
    ) -> Any:
        delays.append(float(extra["countdown"]))
        return signature_from_request(self, request, args, kwargs, queue, **extra)

    type(task).signature_from_request = noted
    task.apply()
    return delays[: len(runs) - 1]  # one more is planned, before Celery sees that it was the last


def delays_of_ours(options: str) -> list[float]:
    source = f"@app.task(bind=True, {options})\ndef fails(self): ..."
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    decorator = task_decorator(function)
    assert isinstance(decorator, ast.Call)
    keywords = {str(word.arg): word.value for word in decorator.keywords}
    gaps: list[str] = []
    policy = retry_of(keywords, False, lambda _, subject, __: gaps.append(subject))
    assert gaps == []
    if policy is None:
        return []
    target_action = RetryPolicy.model_validate(policy)
    if not target_action.allows(("KeyError", "LookupError", "Exception", "BaseException", "object")):
        return []
    return [target_action.delay_before(attempt, 0) for attempt in range(2, target_action.max_attempts + 1)]


@pytest.mark.parametrize("options", OPTIONS)
def test_failing_task_is_tried_as_often_as_celery_tries_it(options: str) -> None:
    assert delays_of_ours(options) == delays_of_celery(options)


def test_max_retries_alone_retries_only_on_request() -> None:
    options = {"max_retries": ast.parse("5", mode="eval").body}
    assert retry_of({}, False, lambda *_: None) is None
    assert retry_of(options, False, lambda *_: None) == retry_of(options, True, lambda *_: None)
    policy = RetryPolicy.model_validate(retry_of(options, False, lambda *_: None))
    assert (policy.max_attempts, policy.initial_delay, policy.jitter) == (6, 180, 0)
    assert not policy.allows(("ValueError", "Exception"))
    assert Retry(after=3) is not None


def test_computed_options_are_named() -> None:
    gaps: list[str] = []
    options = {
        "autoretry_for": ast.parse("ERRORS", mode="eval").body,
        "max_retries": ast.parse("N", mode="eval").body,
    }
    policy = retry_of(options, False, lambda _, subject, __: gaps.append(subject))
    assert policy is not None
    assert policy["retry_on"] == ["Retry"]
    assert len(gaps) == 2


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("'10/m'", {"rate": {"count": 1, "seconds": 6}}),
        ("5", {"rate": {"count": 1, "seconds": 0.2}}),
        ("'10/h'", {"rate": {"count": 1, "seconds": 360}}),
        ("'7/m'", {"rate": {"count": 1, "seconds": pytest.approx(60 / 7)}}),
        ("'0.5/s'", {"rate": {"count": 1, "seconds": 2}}),
        ("None", None),
    ],
)
def test_rate_limit(written: str, expected: dict[str, Any] | None) -> None:
    assert rate_limit(ast.parse(written, mode="eval").body) == expected


@pytest.mark.parametrize("text", ["10/h", "100/m", "4/s", "0.5/s", 5])
def test_rate_has_the_pause_of_celerys_bucket(text: str | float) -> None:
    """The consumer of a worker gives each task a bucket with room for one start, which it refills at the rate."""
    app = Celery("depot", broker="memory://", set_as_current=False)

    def weigh() -> None: ...

    task = app.task(weigh, rate_limit=text)
    bucket = Consumer.bucket_for_task(Mock(), task)
    assert rate_limit(ast.parse(repr(text), mode="eval").body) == {
        "rate": {"count": bucket.capacity, "seconds": pytest.approx(1 / bucket.fill_rate)}
    }


@pytest.mark.parametrize("errors", ["errors()", "(KeyError, *MORE)", "ERRORS"])
def test_backoff_stays_when_only_the_errors_are_computed(errors: str) -> None:
    options = f"autoretry_for={errors}, retry_backoff=2, retry_jitter=False, max_retries=4"
    gaps: list[str] = []
    policy = retry_of(_words(options), False, lambda _, text, __: gaps.append(text))
    assert policy is not None
    certain = retry_of(_words(options.replace(errors, "(KeyError,)")), False, lambda *_: None)
    assert certain is not None
    assert policy | {"retry_on": ["KeyError"]} == certain
    assert policy["retry_on"] == ["Retry"]
    assert [text.partition(":")[0] for text in gaps] == ["autoretry_for is computed"]


def test_computed_errors_beside_no_other_option_have_celerys_policy() -> None:
    policy = retry_of(_words("autoretry_for=errors()"), False, lambda *_: None)
    assert policy == {
        **(retry_of(_words("autoretry_for=(KeyError,)"), False, lambda *_: None) or {}),
        "retry_on": ["Retry"],
    }


@pytest.mark.parametrize("errors", ["()", "[]", "None"])
def test_empty_list_of_errors_retries_nothing(errors: str) -> None:
    assert retry_of(_words(f"autoretry_for={errors}, retry_backoff=True"), False, lambda *_: None) is None


def _words(options: str) -> dict[str, ast.expr]:
    call = ast.parse(f"f({options})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {word.arg or "": word.value for word in call.keywords}
