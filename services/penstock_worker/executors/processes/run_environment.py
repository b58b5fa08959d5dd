"""The environment variables with which a program outside Python gets the facts of its run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

import orjson

from penstock.run.task_executors import Run
from penstock.service.process_secrecy import without_secrets

INHERITED = ("PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SSL_CERT_FILE")
"""The variables of the worker's environment that every command inherits. All others may contain passwords."""


def of_run(run: Run) -> dict[str, str]:
    """Return the variables of a run: `PENSTOCK_*` with its ids, and with its context as JSON if it has one. The
    idempotency token is the same in every attempt. A traced run also has `TRACEPARENT` and `TRACESTATE`.
    With an API it has the address of the API and the token of this attempt."""
    variables = {
        "PENSTOCK_EXECUTION_ID": str(run.event.execution_id),
        "PENSTOCK_ATTEMPT": str(run.event.attempt),
        "PENSTOCK_MAX_ATTEMPTS": str(run.event.max_attempts),
        "PENSTOCK_NAMESPACE": run.event.namespace,
        "PENSTOCK_ACTION": run.event.action,
        "PENSTOCK_ROOT_ID": str(run.event.root),
        "PENSTOCK_IDEMPOTENCY_TOKEN": str(run.event.execution_id),
        "PENSTOCK_ATTEMPT_TOKEN": f"{run.event.execution_id}:{run.event.attempt}",
    }
    if run.event.workflow is not None:
        variables["PENSTOCK_WORKFLOW_ID"] = str(run.event.workflow)
        variables["PENSTOCK_TASK"] = run.event.task or ""
    variables |= {name.upper(): value for name, value in run.trace.items()}
    if run.context:
        variables["PENSTOCK_CONTEXT"] = orjson.dumps(run.context).decode()
    variables |= of_api(run)
    if run.timeout is not None:
        variables["PENSTOCK_TIMEOUT"] = f"{run.timeout:g}"
    return variables


def of_api(run: Run) -> dict[str, str]:
    """Return the variables with which a program calls the API: none if the worker does not know its address."""
    if run.api_address is None or run.token is None:
        return {}
    return {"PENSTOCK_API_ADDRESS": run.api_address, "PENSTOCK_TOKEN": run.token}


def inherited(names: Iterable[str] = ()) -> Mapping[str, str]:
    """Return the harmless variables of the worker, and those in `names`, but never one of our credentials."""
    return without_secrets({name: os.environ[name] for name in (*INHERITED, *names) if name in os.environ})
