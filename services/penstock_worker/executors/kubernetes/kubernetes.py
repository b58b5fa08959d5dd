"""The executor of actions as Kubernetes Jobs, for work that needs another image, more memory or a GPU.

The container gets its parameters as JSON in `PENSTOCK_PARAMS`, beside the other `PENSTOCK_*` variables. Its result is
the content of /dev/termination-log (at most 4 KiB), else the JSON document that ends its log. Exit statuses mean the
same as for commands (program_result.py). Its log is stored with the attempt after its end.

The job's name follows from the execution and the attempt, so a repeated create creates nothing. The job of an earlier
attempt, left by a dead worker, is ended before the next one starts. Cancelled work is deleted, and waited for until
its pods are gone. The worker's account needs create, get, list and delete on jobs, list on pods and get on pods/log.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import structlog

from penstock.attempts.executor_options import program_of
from penstock.errors import Conflict, DefinitionError, InvalidInput
from penstock.language.definitions.program_actions import KubernetesOptions
from penstock.run.task_executors import ExecutorMetrics, Outcome, Run, Tally, TaskError
from penstock_worker.executors.kubernetes import kubernetes_cluster, kubernetes_job
from penstock_worker.executors.kubernetes.kubernetes_api import (
    KubeApi,
    KubernetesRefused,
    KubernetesUnreachable,
)
from penstock_worker.executors.processes import program_result
from penstock_worker.executors.processes.child_output import Tail, Text

log = structlog.get_logger()

DELETE_MARGIN = 30.0
"""The seconds that the cluster gets, beyond the grace, to remove the pods of a deleted job."""


class KubernetesExecutor:
    def __init__(
        self,
        *,
        capacity: int = 20,
        kubeconfig: str | None = None,
        context: str | None = None,
        poll: float = 2.0,
        keep: float = 600.0,
        patience: float = 60.0,
    ) -> None:
        """Create the executor.

        `capacity` is the number of jobs at a time. `kubeconfig` and `context` name the cluster; by default it is the
        one in which this process runs, else that of $KUBECONFIG. `poll` is the number of seconds between two looks at
        a job. `keep` is the number of seconds for which an ended job is kept. `patience` is the number of seconds for
        which the API server may be away.
        """
        self.name = "kubernetes"
        self._tally = Tally(self.name, capacity)
        self.has_capacity = self._tally.has_capacity
        self._where = (kubeconfig, context)
        self._poll = poll
        self._keep = keep
        self._patience = patience
        self._api: KubeApi | None = None
        self._namespace = "default"

    async def open(self) -> None:
        """Connect to the cluster. Raises ConfigurationError if there is none."""
        cluster = kubernetes_cluster.find(*self._where)
        self._api, self._namespace = KubeApi(cluster, self._patience), cluster.namespace

    async def execute(self, run: Run) -> Outcome:
        return await self._tally.counted(self._run, run)

    def metrics(self) -> ExecutorMetrics:
        return self._tally.metrics()

    async def close(self, grace: float) -> None:
        """Close the connections. Jobs end with the tasks that await them."""
        if self._api is not None:
            await self._api.close()
            self._api = None

    async def _run(self, run: Run) -> Outcome:
        assert self._api is not None, "open() comes first"
        try:
            options, params = program_of(run, KubernetesOptions)
            manifest = kubernetes_job.manifest(run, options, params, self._keep)
        except (DefinitionError, InvalidInput) as error:
            return Outcome.refused(error, retryable=False)
        attempt = _Attempt(self._api, run, options, options.namespace or self._namespace)
        try:
            await attempt.end_earlier()
            await attempt.create(manifest)
            return await attempt.follow(self._poll)
        except asyncio.CancelledError:
            run.cancelled = True
            await attempt.end()
            raise
        except KubernetesRefused as error:  # 403 may be an exhausted quota; 400 and 422 are permanent
            return Outcome.refused(error, retryable=False if error.status in (400, 422) else None)
        except KubernetesUnreachable as error:
            return Outcome.refused(error, retryable=True)
        except Conflict as error:
            return Outcome.refused(error)


class _Attempt:
    """The job of one attempt, from its creation to its outcome."""

    def __init__(self, api: KubeApi, run: Run, options: KubernetesOptions, namespace: str) -> None:
        self._api = api
        self._run = run
        self._options = options
        self._namespace = namespace
        self._name = kubernetes_job.name_of(run)

    async def create(self, manifest: dict[str, Any]) -> None:
        """Create the job. Raises Conflict if a job that is not ours has its name."""
        if await self._api.create_job(self._namespace, manifest):
            return
        job = await self._api.job(self._namespace, self._name)
        labels = job["metadata"].get("labels", {}) if job is not None else {}
        if any(labels.get(key) != value for key, value in manifest["metadata"]["labels"].items()):
            raise Conflict(f"there is a job {self._name} that is not Penstock's", hint="Delete it.")

    async def follow(self, poll: float) -> Outcome:
        """Watch the job until it ends, and return its outcome. Give up on a job that cannot start."""
        deadline, started, wait = time.monotonic() + self._options.start_timeout, False, 0.2
        while True:
            job = await self._api.job(self._namespace, self._name)
            if job is None:
                return _failed("JobVanished", f"the job {self._name} was deleted while it ran")
            verdict = kubernetes_job.ended(job)
            if verdict is not None:
                return await self._outcome(*verdict)
            if not started:
                state = await self._state()
                started = bool({"running", "terminated"} & state.keys())
                reason = state.get("waiting", {}).get("reason", "no pod was scheduled")
                if not started and (reason in kubernetes_job.HOPELESS or time.monotonic() > deadline):
                    await self.end()
                    why = state.get("waiting", {}).get("message") or ""
                    return _failed("JobNotStarted", f"the container did not start: {reason} {why}".rstrip())
            await asyncio.sleep(min(wait, poll))
            wait *= 1.5

    async def end(self) -> None:
        """Delete the job and wait until its pods are gone, at most as long as that should take."""
        deadline = time.monotonic() + self._run.grace + DELETE_MARGIN
        try:
            await self._api.delete_job(self._namespace, self._name)
            while await self._api.job(self._namespace, self._name) is not None:
                if time.monotonic() > deadline:
                    log.warning("kubernetes.pods_go_on", job=self._name)
                    return
                await asyncio.sleep(0.2)
        except (KubernetesRefused, KubernetesUnreachable) as error:
            log.warning("kubernetes.job_not_ended", job=self._name, reason=str(error))

    async def end_earlier(self) -> None:
        """Delete the jobs of earlier attempts, as their workers may have died without doing so."""
        if self._run.event.attempt == 1:
            return
        labels = f"{kubernetes_job.EXECUTION_LABEL}={self._run.event.execution_id}"
        for earlier in await self._api.jobs(self._namespace, labels):
            name = earlier["metadata"]["name"]
            if name != self._name and kubernetes_job.ended(earlier) is None:
                await self._api.delete_job(self._namespace, name)

    async def _state(self) -> dict[str, Any]:
        pods = await self._api.pods(self._namespace, self._name)
        return kubernetes_job.container_state(pods[-1]) if pods else {}

    async def _outcome(self, succeeded: bool, reason: str, message: str) -> Outcome:
        pods = await self._api.pods(self._namespace, self._name)
        tail = Tail(self._run.result_limit)
        log_text = Text(lambda text: self._run.log.write("log", text))
        if pods:
            await self._read_log(pods[-1]["metadata"]["name"], tail, log_text)
        if reason == "DeadlineExceeded" and self._run.timeout is not None:
            return Outcome.timed_out(self._run.timeout)
        final = (kubernetes_job.container_state(pods[-1]) if pods else {}).get("terminated", {})
        if succeeded:
            written = str(final.get("message") or "").encode()
            return self._result(written) if written else self._result(tail.read(), cut=tail.cut)
        if final.get("reason") == "OOMKilled":
            return _failed("OutOfMemory", "the container went over its memory limit", log_text.last)
        if final.get("exitCode"):
            return program_result.failure(
                int(final["exitCode"]), log_text.last or str(final.get("message") or "")
            )
        return _failed("JobFailed", f"{reason}: {message}", log_text.last)

    def _result(self, output: bytes, *, cut: bool = False) -> Outcome:
        if self._options.output == "none":
            return Outcome.returned(None)
        return program_result.success(output, self._run.result_limit, cut=cut)[0]

    async def _read_log(self, pod: str, tail: Tail, log_text: Text) -> None:
        def take(piece: bytes) -> None:
            tail(piece)
            log_text(piece)

        try:
            await self._api.read_log(self._namespace, pod, take)
        except (KubernetesRefused, KubernetesUnreachable) as error:
            # Count the output as cut: with an empty log, a lost result would look like null.
            tail.cut = True
            self._run.log("penstock", f"the log of the pod could not be read: {error}")


def _failed(kind: str, message: str, detail: str = "") -> Outcome:
    return Outcome.failed(TaskError(kind, message, detail))
