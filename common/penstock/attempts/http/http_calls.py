"""The call of an action that is a URL. With `request` in its options, an action is a client (http_client.py). Without it, the
parameters are POSTed in an envelope as JSON, and the answer is the result:

| answer | meaning |
|---|---|
| 2xx | completed; the result is the JSON body, or null if there is none. |
| 408, 425, 429, 5xx | failed; the action's policy `retry` may try again, after `Retry-After` if it says so. |
| 307, 308 | sent on, after the new address was checked like the first. |
| other | failed for good. |

A connection that cannot be made is retried. One that breaks after the request was sent is left to the retry policy,
because the work may have been done. Receivers should honour `Idempotency-Key`, which is the same in every attempt.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import orjson

from penstock.attempts.executor_options import program_of
from penstock.attempts.http import http_answers, http_client, http_signature
from penstock.attempts.http.http_client import Connections, core_url
from penstock.errors import (
    AddressRefused,
    ConfigurationError,
    DefinitionError,
    InvalidInput,
    ResultNotStorable,
)
from penstock.language.definitions.program_actions import HttpOptions
from penstock.run.task_executors import Outcome, Run

REDIRECTS = frozenset({307, 308})
"""The redirects that keep the method and the body. Others would turn the POST into a GET."""
MAX_REDIRECTS = 3
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept-encoding"}
)


async def call(
    run: Run, connections: Connections, folder: Path | None = None, *, now: Callable[[], float] = time.time
) -> Outcome:
    """Make the request of an attempt, and return its outcome. `folder` has the files that bodies may name. `now` gives the
    seconds since 1970, for signatures."""
    try:
        options, params = program_of(run, HttpOptions)
        if options.request is not None:
            return await http_client.call(run, options, options.request, params, connections, folder)
        return await _post(run, options, _body(run, params), connections, now)
    except (DefinitionError, InvalidInput, AddressRefused, ResultNotStorable) as error:
        return Outcome.refused(error, retryable=False)
    except ConfigurationError as error:
        return Outcome.refused(error)
    except http_answers.Unreachable as error:
        return error.outcome()


async def _post(
    run: Run, options: HttpOptions, body: bytes, connections: Connections, now: Callable[[], float]
) -> Outcome:
    pool = connections(None)
    url = httpx.URL(options.url)
    headers = {**options.headers, **_headers(run, options, body, now())}
    timeout = {"connect": options.connect_timeout, "read": options.timeout, "write": options.timeout}
    for _ in range(MAX_REDIRECTS + 1):
        with http_answers.reaching("POST", url):
            async with pool.stream(
                "POST",
                core_url(url),
                headers=list(headers.items()),
                content=body,
                extensions={"timeout": timeout},
            ) as response:
                run.log("log", f"POST {http_answers.shown(url)}: {response.status}")
                answer = httpx.Headers(response.headers)
                if response.status not in REDIRECTS:
                    content, whole = await http_answers.read(response, answer, run.result_limit)
                    return http_answers.outcome(run, url, response.status, answer, content, whole)
        onward = http_answers.onward(url, answer)
        if (onward.scheme, onward.host, onward.port) != (url.scheme, url.host, url.port):
            headers = {name: value for name, value in headers.items() if name not in options.headers}
        url = onward
    raise DefinitionError(
        f"{http_answers.shown(httpx.URL(options.url))} redirects more than {MAX_REDIRECTS} times"
    )


def _body(run: Run, params: Mapping[str, Any]) -> bytes:
    event = run.event
    return orjson.dumps(
        {
            "execution_id": event.execution_id,
            "attempt": event.attempt,
            "max_attempts": event.max_attempts,
            "namespace": event.namespace,
            "action": event.action,
            "root": event.root,
            "workflow": event.workflow,
            "task": event.task,
            "idempotency_token": event.execution_id,
            "params": params,
            **({"context": run.context} if run.context else {}),
        }
    )


def _headers(run: Run, options: HttpOptions, body: bytes, now: float) -> dict[str, str]:
    id = f"{run.event.execution_id}:{run.event.attempt}"
    for name in options.headers:
        if name.lower() in _OURS or name.lower().startswith("webhook-"):
            raise DefinitionError(f"the header {name} of {run.action.ref} is set by Penstock")
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json",
        # uncompressed, so that the bound on the bytes read is a bound on the content
        "Accept-Encoding": "identity",
        "User-Agent": "penstock",
        "Idempotency-Key": str(run.event.execution_id),
        **{name: value for name, value in run.trace.items() if name not in map(str.lower, options.headers)},
    }
    if options.secret_env is not None:
        secret = os.environ.get(options.secret_env)
        if not secret:
            raise ConfigurationError(
                f"this worker lacks the environment variable {options.secret_env}, which has the secret "
                f"for the signatures of {run.action.ref}",
                hint="Set the variable on every worker that serves this action.",
            )
        headers |= http_signature.headers(secret, id, int(now), body)
    return headers
