"""Each piece of code of the documents that a user would write: run as written, or what stands in its place."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
import structlog

import penstock
from penstock import (
    Limit,
    MissedFires,
    Pack,
    RetryPolicy,
    Route,
    Schedule,
    Settings,
    kubernetes_action,
    workflow,
)
from penstock.client.schedules import upcoming
from penstock.errors import ConfigurationError, DefinitionError
from penstock.language.policies.after_attempt import ending_of
from penstock.language.schedules.compiled_schedule import compile_schedule
from penstock.language.terms.routing import Router, RoutingRule
from penstock.run.outcomes import Outcome
from penstock.run.run import Run, TaskReadyEvent
from penstock.run.run_log import RunLog
from penstock.run.task_executors import ExecutorMetrics, Tally, TaskExecutor
from penstock.service import environment
from penstock.service.log_setup import configure_logging
from penstock.store.schedules import health
from penstock.store.schedules.figures import Figures
from penstock.testing.memory_workflow import MemoryWorkflow
from tests.penstock.store.tables import events, schedules, workflows
from tests.seeds import documents
from tests.seeds.fragments import FRAGMENTS, PYTHON, USES_OF_ROUTES

ROOT = documents.ROOT
beside = pytest.mark.skipif(documents.folder() is None, reason="the documents are not beside the project")


# -- the table ---------------------------------------------------------------------------------------------------


@beside
def test_table_has_every_fragment_of_the_documents() -> None:
    code = documents.fragments(documents.read())
    assert [fragment.key for fragment in code] == sorted(FRAGMENTS), (
        "a fragment has no row, or a row no fragment"
    )


@beside
def test_python_is_as_in_the_documents() -> None:
    code = {fragment.key: fragment for fragment in documents.fragments(documents.read())}
    assert PYTHON.keys() == {key for key, fragment in code.items() if fragment.language == "python"}
    for key, text in PYTHON.items():
        theirs = code[key].text.splitlines()
        assert [line.strip() for line in text.splitlines()] == [line.strip() for line in theirs]


def test_each_fragment_of_a_user_is_tried() -> None:
    tests = {row.ours for row in FRAGMENTS.values() if row.kind == "user"}
    missing = [name for name in sorted(tests) if not callable(globals().get(name))]
    assert missing == []
    assert all(
        (ROOT / file).is_file()
        for row in FRAGMENTS.values()
        if row.kind != "user"
        for file in row.ours.split()
    )


# -- settings ----------------------------------------------------------------------------------------------------


def _refused(monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    monkeypatch.setenv(name, "true")
    with pytest.raises(ConfigurationError) as refusal:
        environment.load()
    return str(refusal.value.hint)


def test_claiming_cannot_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "every attempt is always claimed" in _refused(monkeypatch, "PENSTOCK_ENABLE_CLAIMING")


def test_heartbeat_interval_is_a_setting() -> None:
    assert Settings().heartbeat_interval == 10


def test_sweeper_is_set_with_two_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (Settings().sweep_interval, Settings().stale_threshold) == (30, 60)
    assert "PENSTOCK_SWEEP_INTERVAL" in _refused(monkeypatch, "PENSTOCK_STALE_CLAIM_SWEEP_INTERVAL")


def test_runner_id_and_runner_name_are_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_RUNNER_ID", "runner-east-1a")
    monkeypatch.setenv("PENSTOCK_RUNNER_NAME", "Production Runner (us-east-1a)")
    settings = environment.load()
    assert settings.name == settings.runner_id == "runner-east-1a"
    assert settings.runner_name == "Production Runner (us-east-1a)"
    monkeypatch.setenv("PENSTOCK_NAME", "another")
    with pytest.raises(ConfigurationError, match="are the same setting"):
        environment.load()


def test_log_lines_name_the_runner(capsys: pytest.CaptureFixture[str]) -> None:
    settings = Settings(runner_id="runner-east-1a", runner_name="Production Runner", log_format="json")
    configure_logging(settings, service="worker")
    try:
        structlog.get_logger().warning("service.waits")
        line = capsys.readouterr().err
    finally:
        structlog.contextvars.clear_contextvars()
    assert '"replica": "runner-east-1a"' in line
    assert '"runner_name": "Production Runner"' in line


def test_executor_config_has_its_defaults() -> None:
    assert Settings().concurrency >= 4
    assert penstock.Timeouts().attempt == 300


# -- routing -----------------------------------------------------------------------------------------------------


def _router(*rules: tuple[str, str]) -> Router:
    routes = [Route(pattern, route) for pattern, route in rules]
    return Router([RoutingRule(route.pattern, route.route) for route in routes], "default")


def test_routing_rules_of_the_scaling_document() -> None:
    router = _router(("ml::*", "gpu"), ("**::batch::*", "k8s"), ("heavy_*", "high_memory"))
    assert [(name, router.route(name)) for name, _ in USES_OF_ROUTES] == list(USES_OF_ROUTES)
    assert router.route("public::shop::etl::heavy_load") == "high_memory"


def test_workers_are_routed_as_boxes() -> None:
    gpu_box, farm, general = (Settings(routes=routes) for routes in ("gpu,default", "etl,default", "default"))
    assert "gpu" in gpu_box.routes.split(",")
    assert "gpu" not in farm.routes + general.routes
    router = _router(("ml::*", "gpu"), ("etl::*", "etl"))
    assert [router.route(name) for name in ("ml::train", "etl::extract", "shop::pay")] == [
        "gpu",
        "etl",
        "default",
    ]


def test_routing_rules_of_the_dispatcher_document() -> None:
    router = _router(("*::ml::*", "gpu"), ("*::batch::*", "k8s"))
    assert router.route("public::ml::train") == router.route("tenant::ml::inference") == "gpu"
    deep = _router(("batch::**", "k8s"), ("public::embedded::my_workflow::*", "own"))
    assert deep.route("batch::jobs::daily") == deep.route("batch::jobs::hourly::cleanup") == "k8s"
    assert deep.route("public::embedded::my_workflow::load") == "own"


def test_runner_with_a_gpu_route() -> None:
    settings = Settings(database_url="postgresql://localhost/cloacina")  # type: ignore[arg-type]
    assert settings.database_url is not None
    assert _router(("*::gpu::*", "gpu")).route("public::gpu::train") == "gpu"


# -- tasks -------------------------------------------------------------------------------------------------------


def _task_of(key: tuple[str, int], tmp_path: Path, **names: Any) -> Any:
    """Run the text of a fragment as a module in which `cloaca` is penstock, and return its task."""
    module = ModuleType(f"seed_{key[1]}")
    module.__dict__.update({"cloaca": penstock, "pack": Pack("backups"), **names})
    file = tmp_path / f"{module.__name__}.py"
    file.write_text(PYTHON[key])
    sys.modules[module.__name__] = module
    exec(compile(PYTHON[key], str(file), "exec"), module.__dict__)
    [task] = [value for value in module.__dict__.values() if isinstance(value, penstock.ContextTask)]
    return task


def _outcome(task: Any, parameters: dict[str, Any]) -> Any:
    """Run a workflow of one task, and return its output."""
    world = MemoryWorkflow(workflow("backups.run", tasks=[task]), parameters).begin()
    result = task.function(**task.bind(world.input(task.name)))
    world.finish((task.name, result))
    assert world.final is not None
    assert world.final.status == "completed"
    return world.final.output


def test_idempotent_backup_runs_as_written(tmp_path: Path) -> None:
    kept: set[str] = set()

    def perform(id: str) -> Any:
        kept.add(id)
        return SimpleNamespace(location=f"/backups/{id}")

    task = _task_of(("003", 150), tmp_path, backup_exists=kept.__contains__, perform_backup=perform)
    first = _outcome(task, {"backup_date": "2026-01-01"})
    assert first["backup_status"] == "created"
    assert first["backup_location"] == "/backups/backup_2026-01-01"
    assert _outcome(task, {"backup_date": "2026-01-01"})["backup_status"] == "already_exists"


def test_robust_backup_runs_as_written(tmp_path: Path) -> None:
    def create(id: str) -> Any:
        if id == "full":
            raise OSError("the disk is full")
        return SimpleNamespace(path=f"/backups/{id}")

    task = _task_of(("003", 452), tmp_path, backup_exists=lambda id: id == "old", create_backup=create)
    assert _outcome(task, {"backup_id": "new"})["backup_location"] == "/backups/new"
    assert _outcome(task, {"backup_id": "old"}) == {"backup_id": "old"}
    failed = _outcome(task, {"backup_id": "full"})
    assert (failed["backup_success"], failed["error"]) == (False, "the disk is full")


def test_bad_counter_runs_as_written(tmp_path: Path) -> None:
    counter = [7]
    task = _task_of(
        ("003", 469),
        tmp_path,
        get_counter=lambda: counter[0],
        set_counter=lambda n: counter.__setitem__(0, n),
    )
    assert _outcome(task, {}) == {}
    assert counter == [8]


def test_retry_policy_takes_its_five_options() -> None:
    policy = RetryPolicy(
        max_attempts=5,
        initial_delay=1,
        max_delay=60,
        backoff_factor=3.0,
        retry_on_errors=["TimeoutError"],
    )
    same = RetryPolicy(max_attempts=5, initial_delay=1, max_delay=60, factor=3.0, retry_on=["TimeoutError"])
    assert policy == same
    assert [policy.delay_before(attempt, 0) for attempt in (2, 3, 4, 5, 6)] == [1, 3, 9, 27, 60]
    assert policy.allows(["TimeoutError", "OSError"])
    assert not policy.allows(["ValueError"])
    with pytest.raises(DefinitionError, match="backoff_factor and factor both given"):
        RetryPolicy(backoff_factor=2, factor=3)


# -- cron --------------------------------------------------------------------------------------------------------


def _fires(cron: str, zone: str = "UTC", since: str = "2026-01-01T00:00:00+00:00") -> list[datetime]:
    schedule = Schedule("backups.daily", action="backups.run", cron=cron, timezone=zone)
    return [
        fire.instant for fire in upcoming(compile_schedule(schedule.body()), datetime.fromisoformat(since), 3)
    ]


def test_daily_backup_is_a_schedule() -> None:
    schedule = Schedule(
        "backups.backup_daily",
        action="backups.daily_backup",
        cron="0 2 * * *",
        timezone="UTC",
        enabled=True,
        context={},
    )
    assert schedule.expression == "0 2 * * *"
    assert [fire.hour for fire in _fires("0 2 * * *")] == [2, 2, 2]


@beside
def test_cron_expressions_are_taken() -> None:
    shown = documents.cron_expressions(documents.fragments(documents.read()))
    assert len(shown) == 6
    for expression in shown:
        assert len(_fires(expression)) == 3
    monday_to_friday = _fires("0 9 * * MON-FRI")
    assert all(fire.weekday() < 5 for fire in monday_to_friday)


@pytest.mark.parametrize(
    ("field", "least", "most"), [(0, 0, 59), (1, 0, 23), (2, 1, 31), (3, 1, 12), (4, 0, 6)]
)
def test_cron_fields_have_their_ranges(field: int, least: int, most: int) -> None:
    def expression(value: int) -> str:
        fields = ["*"] * 5
        fields[field] = str(value)
        return " ".join(fields)

    for value in (least, most):
        Schedule("a.b", action="a.c", cron=expression(value))
    for value in (most + 2, *((least - 1,) if least else ())):  # 7 is Sunday, too
        with pytest.raises(DefinitionError):
            Schedule("a.b", action="a.c", cron=expression(value))


def test_schedule_has_a_zone() -> None:
    assert [fire.astimezone(UTC).hour for fire in _fires("0 2 * * *", "Asia/Tokyo")] == [17, 17, 17]
    with pytest.raises(DefinitionError, match=r"(?i)zone"):
        Schedule("a.b", action="a.c", cron="0 2 * * *", timezone="Mars/Olympus")


def test_missed_fires_have_three_policies() -> None:
    assert MissedFires().grace == 300
    for policy in ("execute", "skip", "delay"):
        assert MissedFires(policy=policy).policy == policy


def test_cron_metrics_have_names_here() -> None:
    names = set(Figures.__dataclass_fields__)
    assert {"total", "active", "per_minute", "took", "failure_rate"} <= names


def test_cron_health_has_its_thresholds() -> None:
    assert (health.MOST_MISSED, health.MOST_STALLED) == (10, 5)


def test_schedule_retries_with_growing_delays() -> None:
    schedule = Schedule(
        "a.b", action="a.c", cron="0 2 * * *", retry={"max_attempts": 4, "initial_delay": 2, "jitter": 0}
    )
    assert schedule.retry is not None
    assert [schedule.retry.delay_before(attempt, 0.5) for attempt in (2, 3, 4)] == [2, 4, 8]
    failed = Outcome.failed(ValueError("x"))
    statuses = [ending_of(failed, schedule.retry, failures).status for failures in range(4)]
    assert statuses == ["requested", "requested", "requested", "failed"]


# -- tables ------------------------------------------------------------------------------------------------------


def _primary_key(table: Any) -> list[str]:
    return [column.name for column in table.primary_key.columns]


def test_workflow_has_one_state_row() -> None:
    assert _primary_key(workflows.workflow) == ["execution_id"]


def test_enforcement_is_unique_by_rule_and_event() -> None:
    assert set(_primary_key(events.enforcement)) == {"rule", "event_id"}
    assert events.enforcement.c.execution_id.unique


def test_schedules_and_fires_are_tables() -> None:
    assert _primary_key(schedules.schedule) == ["ref"]
    assert _primary_key(schedules.fire) == ["schedule", "due_at"]
    assert {"enabled", "next_due", "updated_at"} <= set(schedules.schedule.c.keys())
    assert {"execution_id", "status", "outcome", "ended_at", "error", "made_at"} <= set(
        schedules.fire.c.keys()
    )


def test_schedules_and_fires_have_narrow_indexes() -> None:
    assert "schedule_due" in {index.name for index in schedules.schedule.indexes}
    assert _primary_key(schedules.open_fire) == ["execution_id"]


# -- executors ---------------------------------------------------------------------------------------------------


class MyCustomExecutor:
    """The template of the document: a name, a capacity, counters, and the work."""

    def __init__(self, name: str, max_concurrent: int, work: Callable[[Run], None]) -> None:
        self.name = name
        self.tally = Tally(name, max_concurrent)
        self.work = work

    async def open(self) -> None: ...

    async def execute(self, run: Run) -> Outcome:
        return await self.tally.counted(self.run_task, run)

    async def run_task(self, run: Run) -> Outcome:
        try:
            self.work(run)
        except Exception as error:
            return Outcome.failed(error)
        return Outcome.returned(None)

    def has_capacity(self) -> bool:
        return self.tally.has_capacity()

    def metrics(self) -> ExecutorMetrics:
        return self.tally.metrics()

    async def close(self, grace: float) -> None: ...


def _run(attempt: int = 1) -> Run:
    event = TaskReadyEvent(
        uuid4(), attempt, 3, "public::embedded::workflow::task_name", "embedded.task_name", uuid4()
    )
    return Run(event, {}, None, RunLog(lambda *_: None))  # type: ignore[arg-type]


def test_custom_executor_has_the_four_methods() -> None:
    executor: TaskExecutor = MyCustomExecutor("mine", 2, lambda _: None)
    for method in ("execute", "has_capacity", "metrics"):
        assert callable(getattr(executor, method))
    assert executor.name == "mine"


async def test_custom_executor_runs_and_counts() -> None:
    def work(run: Run) -> None:
        if run.event.attempt == 1:
            raise ConnectionError("the first try")

    executor = MyCustomExecutor("mine", 2, work)
    policy = RetryPolicy(max_attempts=3, jitter=0)
    first, second = await executor.execute(_run(1)), await executor.execute(_run(2))
    assert ending_of(first, policy, 0).status == "requested"
    assert ending_of(second, policy, 1).status == "completed"
    metrics = executor.metrics()
    assert (metrics.active, metrics.executed, metrics.failed) == (0, 2, 1)
    assert executor.has_capacity()


def test_ready_event_has_its_fields_and_no_context() -> None:
    event = _run().event
    assert (event.attempt, event.max_attempts) == (1, 3)
    assert event.namespace == "public::embedded::workflow::task_name"
    assert not [
        name for name in TaskReadyEvent.__dataclass_fields__ if re.search("context|params|data", name)
    ]


def test_kubernetes_executor_is_shipped() -> None:
    job = kubernetes_action("ml.train", "example.org/train:1", timeout="1h", limits=[Limit(2)])
    assert job.executor == "kubernetes"
    assert job.policies.timeouts.attempt == timedelta(hours=1).total_seconds()
    assert (ROOT / "services/penstock_worker/executors/kubernetes/__init__.py").is_file()
