"""The options of other systems, and our options with the same effect: one table, from which hints are made.

A word is looked up under the thing to which it was applied. `ALIASES["action"]["max_retries"]` is for
`@action(max_retries=2)` and for an action of a pack. Words that this language accepts itself (`backoff_factor`,
`@task(retry_attempts=3)`) are not listed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PAGES: Mapping[str, str] = {
    "Attune": "docs/coming-from/attune.md",
    "Cloacina": "docs/coming-from/cloacina.md",
    "StackStorm": "docs/coming-from/stackstorm.md",
    "Celery": "docs/coming-from/celery.md",
    "Prefect": "docs/coming-from/prefect.md",
    "Temporal": "docs/coming-from/temporal.md",
    "Airflow": "docs/coming-from/airflow.md",
}
"""The page for users of another system."""


@dataclass(frozen=True, slots=True)
class Alias:
    """An option of other systems. `options` are our options to write instead. If there is none, `advice` says what to
    do. `systems` are the systems with this word; the first has the most helpful page."""

    systems: tuple[str, ...]
    options: Mapping[str, Any]
    advice: str = ""

    def hint(self, *, in_yaml: bool = True) -> str:
        """Return a hint: our option in Python and, if possible, in YAML, and the page with more about it."""
        parts = [self.advice] if self.advice else []
        if self.options:
            python = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
            yaml = ", ".join(f"{name}: {_in_yaml(value)}" for name, value in self.options.items())
            parts.insert(0, f"Write {python}; in YAML {yaml}." if in_yaml else f"Write {python}.")
        return " ".join([*parts, f"See {PAGES[self.systems[0]]}."])


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


def _in_yaml(value: Any) -> str:
    """Return a value as YAML in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_in_yaml(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_in_yaml(item) for item in value) + "]"
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in ("true", "false", "null"):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is(systems: str, advice: str = "", /, **options: Any) -> Alias:
    return Alias(tuple(systems.split()), options, advice)


_FIRST_TRY = "The number includes the first attempt."
_DEFAULT = "Omit it: Penstock always behaves like this."
_START_TO_CLOSE = "The timeout applies to each attempt."

_RETRY: Mapping[str, Alias] = {
    "attempts": _is("Attune", max_attempts=3),
    "count": _is("StackStorm Attune", _FIRST_TRY, max_attempts=3),
    "max_retries": _is("Celery", _FIRST_TRY, max_attempts=3),
    "retries": _is("Prefect Airflow", _FIRST_TRY, max_attempts=3),
    "maximum_attempts": _is("Temporal", max_attempts=3),
    "retry_attempts": _is("Cloacina", max_attempts=3),
    "delay": _is("StackStorm Attune", initial_delay=5),
    "countdown": _is("Celery", initial_delay=5),
    "default_retry_delay": _is("Celery", initial_delay=5),
    "initial_interval": _is("Temporal", initial_delay=5),
    "retry_delay": _is("Airflow Cloacina", initial_delay=5),
    "retry_delay_ms": _is("Cloacina", "In seconds.", initial_delay=5),
    "retry_delay_seconds": _is("Prefect", initial_delay=5),
    "maximum_interval": _is("Temporal", max_delay=60),
    "max_retry_delay": _is("Airflow", max_delay=60),
    "retry_backoff_max": _is("Celery", max_delay=60),
    "retry_max_delay": _is("Cloacina", max_delay=60),
    "retry_max_delay_ms": _is("Cloacina", "In seconds.", max_delay=60),
    "backoff_coefficient": _is("Temporal", factor=2.0),
    "multiplier": _is("Cloacina", factor=2.0),
    "backoff_strategy": _is("Cloacina", backoff="exponential"),
    "retry_backoff": _is("Cloacina Celery", backoff="exponential"),
    "retry_exponential_backoff": _is("Airflow", backoff="exponential"),
    "retry_jitter": _is("Cloacina Celery", jitter=0.25),
    "retry_jitter_factor": _is("Prefect", jitter=0.25),
    "autoretry_for": _is("Celery", retry_on=["ConnectionError"]),
    "retry_for": _is("Celery", retry_on=["ConnectionError"]),
    "retry_condition": _is("Cloacina", "Name the errors that may be retried.", retry_on=["ConnectionError"]),
    "retry_conditions": _is("Cloacina", "Name the errors that may be retried.", retry_on=["ConnectionError"]),
    "retry_condition_fn": _is(
        "Prefect", "Name the errors that may be retried.", retry_on=["ConnectionError"]
    ),
    "dont_autoretry_for": _is("Celery", never_on=["ValueError"]),
    "non_retryable_error_types": _is("Temporal", never_on=["ValueError"]),
    "when": _is("StackStorm", "Name the errors that are retried.", retry_on=["ConnectionError"]),
}
_FLAT_RETRY: Mapping[str, Alias] = {
    word: Alias(alias.systems, {"retry": alias.options}, alias.advice)
    for word, alias in _RETRY.items()
    if word not in ("when", "count", "delay", "attempts", "countdown", "multiplier")
} | {
    "retry_policy": _is("Temporal Cloacina", retry={"max_attempts": 3}),
    "max_attempts": _is("Cloacina", retry={"max_attempts": 3}),
    "initial_delay": _is("Cloacina", retry={"initial_delay": 5}),
    "max_delay": _is("Cloacina", retry={"max_delay": 60}),
    "backoff_factor": _is("Cloacina", retry={"factor": 2.0}),
    "retry_on_errors": _is("Cloacina", retry={"retry_on": ["ConnectionError"]}),
}
"""The words of systems that write each part of a retry policy as an option of the task."""
_TIMES: Mapping[str, Alias] = {
    "task_timeout": _is("Cloacina", timeout=300),
    "timeout_seconds": _is("Prefect Attune", timeout=300),
    "time_limit": _is("Celery", timeout=300),
    "soft_time_limit": _is(
        "Celery",
        "The code can check `current().cancelled`, and has the grace period of the worker to stop.",
        timeout=300,
    ),
    "execution_timeout": _is("Airflow", timeout=300),
    "start_to_close_timeout": _is("Temporal", _START_TO_CLOSE, timeout=300),
    "schedule_to_close_timeout": _is("Temporal", timeouts={"total": 3600}),
    "schedule_to_start_timeout": _is("Temporal", timeouts={"schedule_to_start": 300}),
    "heartbeat_timeout": _is(
        "Temporal", "Omit it: the heartbeat of the worker covers all attempts that it runs."
    ),
}
_WHERE: Mapping[str, Alias] = {
    "queue": _is("Celery Airflow", route="heavy"),
    "task_queue": _is("Temporal", route="heavy"),
    "pool": _is("Airflow", "A limit can cover several actions.", limits=[{"max": 5}]),
    "rate_limit": _is("Celery", limits=[{"rate": "100/min"}]),
    "max_active_tis_per_dag": _is("Airflow", limits=[{"max": 5}]),
    "concurrency_limit": _is("Attune", limits=[{"max": 5}]),
}
_ACTION: Mapping[str, Alias] = {
    **_FLAT_RETRY,
    **_TIMES,
    **_WHERE,
    "id": _is("Cloacina", ref="etl.extract"),
    "name": _is("Celery Prefect", ref="etl.extract"),
    "task_id": _is("Airflow", ref="etl.extract"),
    "task_run_name": _is("Prefect", ref="etl.extract"),
    "label": _is("Attune", description="Extract the rows."),
    "dependencies": _is(
        "Cloacina",
        "An action has no dependencies. Set them on a task in a workflow: `@task(dependencies=[...])`.",
    ),
    "trigger_rules": _is(
        "Cloacina",
        "An action has no trigger rules. Set them on a task in a workflow: `@task(trigger_rules=...)`.",
    ),
    "trigger_rule": _is(
        "Airflow", "An action has no trigger rule. Set it on a task in a workflow: `.when('all_done')`."
    ),
    "bind": _is("Celery", "Omit it, and the parameter `self`, too: the run is `penstock.current()`."),
    "acks_late": _is("Celery", _DEFAULT),
    "ignore_result": _is("Celery", "Omit it: results are stored until their retention is over."),
    "serializer": _is("Celery", "Omit it: parameters and results are always JSON."),
    "reject_on_worker_lost": _is("Celery", on_worker_loss="fail"),
    "persist_result": _is("Prefect", _DEFAULT),
    "on_completion": _is("Prefect", on_success=["etl.note"]),
    "on_success_callback": _is("Airflow", on_success=["etl.note"]),
    "on_failure_callback": _is("Airflow", on_failure=["etl.note"]),
    "worker_selector": _is("Attune", labels={"gpu": "a100"}),
    "runtime": _is("Attune", executor="process"),
    "runner_type": _is("Attune StackStorm", executor="process"),
    "runner": _is("StackStorm Attune", executor="process"),
    "invokes": _is("Cloacina", "Add a task for this to a workflow."),
}
_STEP: Mapping[str, Alias] = {
    **_FLAT_RETRY,
    **_TIMES,
    **_WHERE,
    "dependencies": _is("Cloacina", needs=["extract"]),
    "depends_on": _is("Attune", needs=["extract"]),
    "wait_for": _is(
        "Attune Prefect", "To ask a person, write a task with `inquiry: {prompt: ...}`.", needs=["extract"]
    ),
    "trigger_rule": _is("Airflow", when="all_done"),
    "trigger_rules": _is("Cloacina", when="all_done"),
    "with": _is("StackStorm", with_items="{{ parameters.items }}"),
    "items": _is("StackStorm", with_items="{{ parameters.items }}"),
    "on_success": _is("Attune", next=[{"when": "succeeded()", "do": ["load"]}]),
    "on_failure": _is("Attune", next=[{"when": "failed()", "do": ["load"]}]),
    "on_complete": _is("Attune", next=[{"when": True, "do": ["load"]}]),
    "on_timeout": _is("Attune", next=[{"when": "timed_out()", "do": ["load"]}]),
    "decision": _is("Attune", next=[{"when": "result.total > 100", "do": ["load"]}]),
    "transitions": _is("Attune", next=[{"when": "succeeded()", "do": ["load"]}]),
    "parameters": _is("StackStorm", input={"day": "{{ parameters.day }}"}),
    "params": _is("Celery", input={"day": "{{ parameters.day }}"}),
    "worker_selector": _is("Attune", "Set labels on the action: `labels: {gpu: a100}`."),
    "permission_set_refs": _is("Attune", "Omit it: running code gets no credentials from Penstock."),
    "iterate_cache": _is(
        "Attune", "Read the list in a task, and use its result in `with_items` of the next task."
    ),
    "task_name": _is("Cloacina", "The name of a task is its key, or its `name`."),
    "task_configuration": _is("Cloacina", input={"day": 7}),
}
_TASK: Mapping[str, Alias] = {
    **{word: alias for word, alias in _ACTION.items() if word not in ("dependencies", "trigger_rules")},
    "needs": _is("Cloacina", dependencies=["extract"]),
    "depends_on": _is("Attune", dependencies=["extract"]),
    "after": _is("Cloacina", dependencies=["extract"]),
    "wait_for": _is("Prefect Attune", dependencies=["extract"]),
    "when": _is("Cloacina", trigger_rules="all_done"),
    "name": _is("Celery Prefect", id="extract"),
    "task_id": _is("Airflow", id="extract"),
    "input": _is("Attune", "A function under @task has the parameter `context`: read `context['day']`."),
    "publish": _is(
        "Attune StackStorm", "A function under @task publishes a value by setting it: `context['day'] = 7`."
    ),
    "with_items": _is(
        "Attune", "To run a task for each item of a list, use `each(items)` in a workflow function."
    ),
    "iterate_cache": _is(
        "Attune", "To run a task for each item of a list, use `each(items)` in a workflow function."
    ),
    "label": _is("Attune", "Write the description as the docstring of the function."),
    "description": _is("Attune", "Write the description as the docstring of the function."),
    "post_invocation": _is("Cloacina", "Make the following task depend on this one."),
}
_OF_TASK_ITSELF = frozenset(
    {
        "id",
        "trigger_rule",
        "retry_attempts",
        "retry_delay",
        "retry_delay_ms",
        "retry_max_delay",
        "retry_max_delay_ms",
    }
    | {"retry_backoff", "retry_jitter", "retry_condition"}
)
"""The words that `@task` accepts itself."""

ALIASES: Mapping[str, Mapping[str, Alias]] = {
    "retry": _RETRY,
    "action": _ACTION,
    "task": {word: alias for word, alias in _TASK.items() if word not in _OF_TASK_ITSELF},
    "step": _STEP,
    "timeouts": {
        "start_to_close": _is("Temporal", _START_TO_CLOSE, attempt=300),
        "schedule_to_close": _is("Temporal", total=3600),
        "task_timeout": _is("Cloacina", attempt=300),
        "timeout": _is("Attune", attempt=300),
    },
    "workflow": {
        "input": _is("StackStorm", parameters={"day": {"type": "integer"}}),
        "params": _is("Airflow", parameters={"day": {"type": "integer"}}),
        "output_map": _is("Attune", output={"day": "{{ parameters.day }}"}),
        "output_schema": _is("Attune", "The result of a workflow is its `output`: `output: {day: ...}`."),
        "name": _is("Prefect", "The name is the first argument: `workflow('etl.nightly', ...)`."),
        "dag_id": _is("Airflow", "The name is the first argument: `workflow('etl.nightly', ...)`."),
        "label": _is("Attune", description="Load the day."),
        "version": _is(
            "Attune StackStorm", "Omit it: `penstock apply` creates a version for each changed definition."
        ),
        "tags": _is("Attune StackStorm", description="Load the day."),
        "timeout_seconds": _is("Prefect", timeout=3600),
        "workflow_timeout": _is("Cloacina", timeout=3600),
        "dagrun_timeout": _is("Airflow", timeout=3600),
        "execution_timeout": _is("Temporal", timeout=3600),
        "max_active_runs": _is("Airflow", limits=[{"max": 1}]),
        "cron": _is("Attune", "Put `@schedule('0 2 * * *')` above it."),
        "schedule": _is("Airflow", "Put `@schedule('0 2 * * *')` above it."),
        "schedule_interval": _is("Airflow", "Put `@schedule('0 2 * * *')` above it."),
        "catchup": _is("Airflow", "Write `missed` of its schedule: {'catch_up': 'all'}."),
        "retries": _is("Prefect", "Its tasks have policies of their own: retry={'max_attempts': 3}."),
        "default_args": _is("Airflow", "Write the options at each action."),
    },
    "rule": {
        "criteria": _is("StackStorm", when="payload.amount > 100"),
        "condition": _is("Attune", when="payload.amount > 100"),
        "conditions": _is("Attune", when="payload.amount > 100"),
        "trigger_ref": _is("Attune", trigger="shop.order_placed"),
        "trigger_params": _is("Attune", when="payload.amount > 100"),
        "action_ref": _is("Attune", action="shop.charge"),
        "action_params": _is("Attune", params={"order": "{{ payload.id }}"}),
        "parameters": _is("StackStorm", params={"order": "{{ payload.id }}"}),
        "label": _is("Attune", description="Charge big orders."),
        "name": _is("StackStorm", ref="shop.charge_big"),
        "id": _is("Attune", ref="shop.charge_big"),
        "tags": _is("Attune StackStorm", description="Charge big orders."),
        "pack": _is("StackStorm", ref="shop.charge_big"),
    },
    "schedule": {
        "id": _is("Cloacina", ref="shop.nightly"),
        "name": _is("Prefect", ref="shop.nightly"),
        "cron_expression": _is("Cloacina", cron="0 2 * * *"),
        "expression": _is("Attune", cron="0 2 * * *"),
        "schedule": _is("Celery Airflow", cron="0 2 * * *"),
        "crontab": _is("Celery", cron="0 2 * * *"),
        "interval": _is("Prefect", every=60),
        "fire_at": _is("Attune", at="2030-01-31T09:00:00+00:00"),
        "workflow_name": _is("Cloacina", action="shop.charge"),
        "workflow": _is("Cloacina", action="shop.charge"),
        "task": _is("Celery", action="shop.charge"),
        "tz": _is("Airflow", timezone="Europe/Paris"),
        "args": _is("Celery", params={"order": 7}),
        "kwargs": _is("Celery", params={"order": 7}),
        "parameters": _is("Prefect", params={"order": 7}),
        "grace_period": _is("Cloacina", missed={"grace": 300}),
        "missed_execution_policy": _is("Cloacina", missed={"policy": "skip"}),
        "catchup": _is("Airflow", missed={"catch_up": "all"}),
        "catchup_window": _is("Temporal", missed={"grace": 300}),
        "overlap_policy": _is("Temporal", overlap="skip"),
        "allow_concurrent": _is("Cloacina", overlap="skip"),
        "max_instances": _is("Airflow", overlap="skip"),
        "max_retries": _is("Cloacina", _FIRST_TRY, retry={"max_attempts": 3}),
        "start_date": _is("Airflow", starts_at="2030-01-31T09:00:00+00:00"),
        "end_date": _is("Airflow", ends_at="2030-01-31T09:00:00+00:00"),
    },
    "limit": {
        "limit": _is("Attune", max=5),
        "threshold": _is("StackStorm", max=5),
        "concurrency": _is("Prefect Attune", max=5),
        "slots": _is("Airflow", max=5),
        "method": _is("Attune", when_full="enqueue"),
        "action": _is("StackStorm", when_full="cancel_new"),
        "parameters": _is("Attune", by=["customer"]),
        "attributes": _is("StackStorm", by=["customer"]),
        "rate_limit": _is("Attune Celery", rate="100/min"),
        "max_executions": _is("Attune", rate="100/min"),
        "window_seconds": _is("Attune", rate="100/min"),
        "priority": _is("Attune", "Omit it: all limits of an execution apply at the same time."),
        "quotas": _is("Attune", "A quota is a limit of its own: max=10, scope='*'.", max=10),
        "action_ref": _is("Attune", scope="shop.charge", ref="shop.charging"),
        "pack_ref": _is("Attune", scope="shop", ref="shop.charging"),
    },
    "trigger": {
        "payload_schema": _is("StackStorm Attune", schema={"id": "integer"}),
        "parameters_schema": _is(
            "StackStorm Attune", "A rule checks the payload with a condition in `when`."
        ),
        "param_schema": _is("Attune", "A rule checks the payload with a condition in `when`."),
        "label": _is("Attune", description="An order was placed."),
        "name": _is("StackStorm", ref="shop.order_placed"),
        "type": _is("Attune", "A timer is a schedule; a webhook is set with `penstock webhooks set`."),
        "tags": _is("Attune StackStorm", description="An order was placed."),
    },
    "poll": {
        "poll_interval": _is("Cloacina Attune StackStorm", every=30),
        "interval": _is("Attune", every=30),
    },
    "missed": {
        "grace_period": _is("Cloacina", grace=300),
        "catchup": _is("Airflow", catch_up="all"),
        "max_catchup_executions": _is("Cloacina", catch_up="all", at_most=100),
    },
}
"""The aliases by thing, then by word."""
IN_PYTHON_ALONE = "task"
"""The thing that has no YAML form: `@task`."""

SETTINGS: Mapping[str, tuple[str, str]] = {
    "ENABLE_CLAIMING": ("Cloacina", "Unset it: every attempt is always claimed by one worker."),
    "ENABLE_RECOVERY": ("Cloacina", "Unset it: every executor recovers lost work."),
    "STALE_CLAIM_SWEEP_INTERVAL": ("Cloacina", "Set PENSTOCK_SWEEP_INTERVAL."),
    "STALE_CLAIM_THRESHOLD": ("Cloacina", "Set PENSTOCK_STALE_THRESHOLD."),
    "MAX_CONCURRENT_TASKS": ("Cloacina", "Set PENSTOCK_CONCURRENCY."),
    "TASK_TIMEOUT": ("Cloacina", "Set timeout=300 on the action. Five minutes is also the default."),
    "DB_POOL_SIZE": ("Cloacina", "Set PENSTOCK_DATABASE_CONNECTIONS."),
    "SCHEDULER_POLL_INTERVAL": ("Cloacina", "Set PENSTOCK_POLL_INTERVAL."),
    "ROUTING_CONFIG": ("Cloacina", "Write `Route('ml::*', 'gpu')`, and apply it."),
    "RUNNER": ("Cloacina", "Set PENSTOCK_RUNNER_ID or PENSTOCK_RUNNER_NAME."),
    "WORKER_CONCURRENCY": ("Celery", "Set PENSTOCK_CONCURRENCY."),
    "WORKER_PREFETCH_MULTIPLIER": (
        "Celery",
        "Unset it: a worker never takes more executions than it has free slots.",
    ),
    "TASK_DEFAULT_QUEUE": ("Celery", "Write a route: `Route('**', 'default')`."),
    "RESULT_BACKEND": ("Celery", "Results are in PostgreSQL; large ones go to PENSTOCK_RESULT_STORE."),
}
"""The words of other systems as PENSTOCK_ variables: the system that has each word, and the hint."""


def alias_hint(thing: str, word: str) -> str | None:
    """Return the hint for an option that another system has, or None. `thing` is a key of `ALIASES`."""
    alias = ALIASES.get(thing, {}).get(word)
    return None if alias is None else alias.hint(in_yaml=thing != IN_PYTHON_ALONE)


def setting_hint(variable: str) -> str | None:
    """Return the hint for a variable such as PENSTOCK_ENABLE_CLAIMING, or None."""
    entry = SETTINGS.get(variable.removeprefix("PENSTOCK_").upper())
    return None if entry is None else f"{entry[1]} See {PAGES[entry[0]]}."
