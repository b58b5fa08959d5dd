"""The Kubernetes Job of one attempt: its manifest, and the meaning of its status."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import orjson

from penstock.errors import InvalidInput
from penstock.language.definitions.program_actions import KubernetesOptions
from penstock.run.task_executors import Run
from penstock_worker.executors.processes import run_environment

EXECUTION_LABEL = "penstock.dev/execution"
ATTEMPT_LABEL = "penstock.dev/attempt"
CONTAINER = "action"
PARAMS_LIMIT = 100_000
"""The maximum size of the parameters, in bytes. Linux refuses environment variables over 128 KiB."""
HOPELESS = frozenset(
    {"ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "CreateContainerError"}
)
"""The reasons for which a container waits without end. A failed image pull is not among them, as it may recover."""


def name_of(run: Run) -> str:
    """Return the name of an attempt's job. The name depends only on the attempt, so that a second creation creates
    nothing."""
    return f"penstock-{run.event.execution_id.hex}-{run.event.attempt}"


def manifest(run: Run, options: KubernetesOptions, params: Mapping[str, Any], keep: float) -> dict[str, Any]:
    """Return the manifest of the Job. Kubernetes never retries it, as the retry policy decides that. Kubernetes ends
    it at its timeout even if the worker is gone, and removes it `keep` seconds after its end. Raises InvalidInput if
    the parameters are too large for an environment variable."""
    params_json = orjson.dumps(params)
    if len(params_json) > PARAMS_LIMIT:
        raise InvalidInput(
            f"the parameters have {len(params_json):,} bytes; a Kubernetes job takes at most {PARAMS_LIMIT:,}",
            hint="Put them in an object store and pass a link.",
        )
    env = {**options.env, **run_environment.of_run(run), "PENSTOCK_PARAMS": params_json.decode()}
    labels = {
        "app.kubernetes.io/managed-by": "penstock",
        EXECUTION_LABEL: str(run.event.execution_id),
        ATTEMPT_LABEL: str(run.event.attempt),
    }
    container: dict[str, Any] = {
        "name": CONTAINER,
        "image": options.image,
        "command": options.command,
        "args": options.args,
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": options.resources,
        # Kubernetes reads the message from /dev/termination-log. If that is empty and the program failed, it takes the
        # end of the log.
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod = {
        "restartPolicy": "Never",
        "containers": [_without_nothing(container)],
        "serviceAccountName": options.service_account,
        "nodeSelector": options.node_selector,
        "imagePullSecrets": [{"name": secret} for secret in options.image_pull_secrets],
        "terminationGracePeriodSeconds": math.ceil(run.grace),
    }
    spec = {
        "backoffLimit": 0,
        "activeDeadlineSeconds": None if run.timeout is None else max(1, math.ceil(run.timeout)),
        "ttlSecondsAfterFinished": math.ceil(keep),
        "template": {"metadata": {"labels": labels}, "spec": _without_nothing(pod)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name_of(run), "labels": labels},
        "spec": _without_nothing(spec),
    }


def ended(job: Mapping[str, Any]) -> tuple[bool, str, str] | None:
    """Return None while the job runs. Then return whether it completed, and the reason and message if not."""
    for condition in job.get("status", {}).get("conditions") or ():
        if condition.get("status") == "True" and condition.get("type") in ("Complete", "Failed"):
            succeeded = condition["type"] == "Complete"
            return succeeded, condition.get("reason") or "", condition.get("message") or ""
    return None


def container_state(pod: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of the action's container: `{"waiting": ...}`, `{"running": ...}` or `{"terminated": ...}`, or
    {} before it has one."""
    for status in pod.get("status", {}).get("containerStatuses") or ():
        if status.get("name") == CONTAINER:
            return dict(status.get("state") or {})
    return {}


def _without_nothing(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, {}, [])}
