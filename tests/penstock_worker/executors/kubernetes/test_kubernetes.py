from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.language.definitions.program_actions import KubernetesOptions
from penstock.run.task_executors import Outcome, Run, attempt
from penstock_worker.executors.kubernetes import kubernetes_job
from penstock_worker.executors.kubernetes.kubernetes import KubernetesExecutor
from tests.penstock_worker.executors import fake_kubernetes
from tests.penstock_worker.executors.fake_kubernetes import FakeKubernetes
from tests.penstock_worker.executors.runs import run_of, until


@pytest.fixture
def cluster() -> Iterator[FakeKubernetes]:
    with fake_kubernetes.serving() as cluster:
        yield cluster


@pytest.fixture
async def executor(cluster: FakeKubernetes, tmp_path: Path) -> AsyncIterator[KubernetesExecutor]:
    config = tmp_path / "kubeconfig"
    config.write_text(fake_kubernetes.kubeconfig(cluster))
    executor = KubernetesExecutor(kubeconfig=str(config), poll=0.05, patience=0.5)
    await executor.open()
    yield executor
    await executor.close(0)


def _sh(script: str, params: dict[str, Any] | None = None, *, attempt: int = 1, **options: Any) -> Run:
    return run_of({"image": "shell", "command": ["sh", "-c", script], **options}, params, attempt=attempt)[0]


def _manifest(run: Run) -> dict[str, Any]:
    return kubernetes_job.manifest(run, KubernetesOptions.model_validate(run.action.options), run.params, 600)


async def test_the_job_has_the_values_of_the_options_and_the_run(
    executor: KubernetesExecutor, cluster: Any
) -> None:
    run = _sh(
        "echo 1",
        {"order": 7},
        env={"COLOUR": "red"},
        service_account="robot",
        resources={"limits": {"memory": "1Gi"}},
        node_selector={"gpu": "yes"},
        image_pull_secrets=["registry"],
    )
    run.timeout = 90.5
    await attempt(executor, run)
    (made,) = cluster.created
    id = run.event.execution_id
    assert made["metadata"]["name"] == f"penstock-{id.hex}-1"
    assert len(made["metadata"]["name"]) <= 63
    assert made["metadata"]["labels"][kubernetes_job.EXECUTION_LABEL] == str(id)
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (0, 91)
    assert made["spec"]["ttlSecondsAfterFinished"] == 600
    pod = made["spec"]["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("Never", "robot")
    assert (pod["nodeSelector"], pod["imagePullSecrets"]) == ({"gpu": "yes"}, [{"name": "registry"}])
    (container,) = pod["containers"]
    assert container["resources"] == {"limits": {"memory": "1Gi"}}
    env = {each["name"]: each["value"] for each in container["env"]}
    assert (env["COLOUR"], env["PENSTOCK_PARAMS"]) == ("red", '{"order":7}')
    assert env["PENSTOCK_EXECUTION_ID"] == str(id)
    assert cluster.unauthorized == 0


async def test_the_result_is_the_termination_message_or_else_ends_the_log(
    executor: KubernetesExecutor,
) -> None:
    told = await attempt(executor, _sh("echo '[1]' > $TERMINATION_LOG; echo noise"))
    assert told.result == [1]
    run, lines = run_of({"image": "shell", "command": ["sh", "-c", "echo noise >&2; echo '[2]'"]})
    assert (await attempt(executor, run)).result == [2]
    assert lines == [("log", "noise"), ("log", "[2]")]
    nothing = await attempt(executor, _sh("echo noise", output="none"))
    assert (nothing.kind, nothing.result) == ("completed", None)


async def test_creating_the_job_of_an_attempt_twice_creates_one(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    run = _sh("echo 1")
    # The answer to the first create is lost, as when the server fails after it has stored the job.
    cluster.create("jobs", _manifest(run))
    assert (await attempt(executor, run)).result == 1
    assert len(cluster.created) == 1


async def test_a_job_of_that_name_that_is_not_ours_is_left_alone(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    run = _sh("echo 1")
    other = _manifest(run)
    cluster.create("jobs", {**other, "metadata": {"name": kubernetes_job.name_of(run), "labels": {}}})
    outcome = await attempt(executor, run)
    assert outcome.error is not None
    assert outcome.error.type == "Conflict"
    assert len(cluster.jobs) == 1


async def test_a_job_of_an_earlier_attempt_is_ended_first(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    first = _sh("sleep 60")
    cluster.create("jobs", _manifest(first))
    again = _sh("echo 2", attempt=2)
    again.event = replace(again.event, execution_id=first.event.execution_id)
    stranger = _sh("sleep 60")
    cluster.create("jobs", _manifest(stranger))
    assert (await attempt(executor, again)).result == 2
    await until(lambda: ("jobs", kubernetes_job.name_of(first)) not in cluster.jobs)
    assert ("jobs", kubernetes_job.name_of(stranger)) in cluster.jobs


async def test_a_cancelled_job_is_gone_before_the_executor_says_so(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    run = _sh("trap '' TERM; while :; do sleep 0.01; done")
    run.grace = 0.2
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: bool(cluster.pods))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cluster.jobs == {}


@pytest.mark.parametrize(
    ("script", "kind", "retryable"),
    [("exit 1", "ExitStatus", None), ("exit 75", "ExitStatus", True), ("exit 64", "ExitStatus", False)],
)
async def test_exit_statuses_mean_the_same_as_for_commands(
    executor: KubernetesExecutor, script: str, kind: str, retryable: bool | None
) -> None:
    outcome = await attempt(executor, _sh(f"echo the reason; {script}"))
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == (kind, retryable)
    assert "the reason" in outcome.error.message


async def test_running_out_of_memory_is_said(executor: KubernetesExecutor, cluster: FakeKubernetes) -> None:
    task = asyncio.create_task(attempt(executor, _sh("sleep 0.2; kill -9 $$")))
    await until(lambda: bool(cluster.pods))
    next(iter(cluster.pods.values())).out_of_memory = True
    outcome = await task
    assert outcome.error is not None
    assert outcome.error.type == "OutOfMemory"


async def test_the_cluster_ends_a_job_whose_worker_does_not(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    run = _sh("sleep 60")
    run.timeout = 0.5
    outcome: Outcome = await executor.execute(run)  # without `attempt`: nothing here watches the time
    assert outcome.kind == "timed_out"


async def test_a_container_that_does_not_start_fails_with_the_reason(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    run, _ = run_of({"image": "missing", "command": ["true"], "start_timeout": 0.2})
    outcome = await attempt(executor, run)
    assert outcome.error is not None
    assert outcome.error.type == "JobNotStarted"
    assert "ImagePullBackOff" in outcome.error.message
    assert cluster.jobs == {}


async def test_a_deleted_job_is_a_failure(executor: KubernetesExecutor, cluster: FakeKubernetes) -> None:
    run = _sh("sleep 60")
    task = asyncio.create_task(attempt(executor, run))
    await until(lambda: bool(cluster.pods))
    cluster.delete("jobs", kubernetes_job.name_of(run), "Background")
    outcome = await task
    assert outcome.error is not None
    assert outcome.error.type == "JobVanished"


async def test_an_api_server_that_is_away_for_a_moment_is_waited_for(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    cluster.refusals = [503]
    assert (await attempt(executor, _sh("echo 1"))).result == 1


async def test_an_api_server_that_stays_away_fails_the_attempt_to_be_retried(
    executor: KubernetesExecutor, cluster: FakeKubernetes
) -> None:
    cluster.refusals = [500] * 100
    outcome = await attempt(executor, _sh("echo 1"))
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("KubernetesUnreachable", True)


@pytest.mark.parametrize(("status", "retryable"), [(422, False), (403, None)])
async def test_a_job_that_is_refused_says_why(
    executor: KubernetesExecutor, cluster: FakeKubernetes, status: int, retryable: bool | None
) -> None:
    cluster.refusals = [status]
    outcome = await attempt(executor, _sh("echo 1"))
    assert outcome.error is not None
    assert outcome.error.retryable is retryable
    assert "refused for a test" in outcome.error.message


async def test_parameters_that_no_environment_holds_are_refused(executor: KubernetesExecutor) -> None:
    outcome = await attempt(executor, _sh("echo 1", {"big": "x" * 200_000}))
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.retryable) == ("InvalidInput", False)


def test_names_differ_between_attempts_and_executions() -> None:
    runs = [_sh("true"), _sh("true", attempt=2), _sh("true")]
    runs[1].event = replace(runs[1].event, execution_id=runs[0].event.execution_id)
    assert len({kubernetes_job.name_of(run) for run in runs}) == 3
