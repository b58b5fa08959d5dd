"""The requests to the Kubernetes API that a Job needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx
import orjson
import tenacity

from penstock.errors import PenstockError
from penstock.run.cut_texts import cut_end
from penstock_worker.executors.kubernetes.kubernetes_cluster import Cluster
from penstock_worker.executors.kubernetes.kubernetes_job import CONTAINER


class KubernetesRefused(PenstockError):
    """The API server answered with a status that a retry does not change. `status` is the HTTP status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class KubernetesUnreachable(PenstockError):
    """The API server could not be reached, or failed, for longer than the executor's `patience`."""


class KubeApi:
    """A client of one API server. `patience` is the number of seconds for which a request is retried while the server
    is away, throttles (429), or fails (5xx)."""

    def __init__(self, cluster: Cluster, patience: float) -> None:
        self._cluster = cluster
        self._patience = patience
        self._client = httpx.AsyncClient(
            base_url=cluster.server,
            verify=cluster.tls if cluster.tls is not None else True,
            timeout=httpx.Timeout(30.0),
            trust_env=False,
        )

    async def create_job(self, namespace: str, manifest: Mapping[str, Any]) -> bool:
        """Create a job. Return False if one of this name exists."""
        return await self._call("POST", _jobs(namespace), json=manifest, quiet=409) is not None

    async def job(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Return the job, or None if it does not exist."""
        return await self._call("GET", f"{_jobs(namespace)}/{name}", quiet=404)

    async def delete_job(self, namespace: str, name: str) -> None:
        """Delete the job, which ends its pods. The job exists until they have ended ("Foreground")."""
        path = f"{_jobs(namespace)}/{name}"
        await self._call("DELETE", path, params={"propagationPolicy": "Foreground"}, quiet=404)

    async def jobs(self, namespace: str, labels: str) -> list[dict[str, Any]]:
        answer = await self._call("GET", _jobs(namespace), params={"labelSelector": labels})
        return list((answer or {}).get("items") or ())

    async def pods(self, namespace: str, job: str) -> list[dict[str, Any]]:
        """Return the pods of a job, oldest first."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        answer = await self._call("GET", path, params={"labelSelector": f"job-name={job}"})
        items = list((answer or {}).get("items") or ())
        return sorted(items, key=lambda pod: str(pod["metadata"].get("creationTimestamp")))

    async def read_log(self, namespace: str, pod: str, take: Callable[[bytes], None]) -> None:
        """Pass the log of a pod's container to `take`, piece by piece. Standard output and standard error are one
        stream there. Raises KubernetesRefused if the API server rejects the request, and KubernetesUnreachable if it
        cannot be reached, possibly after some pieces."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        headers = self._cluster.authorization()
        try:
            async with self._client.stream(
                "GET", path, params={"container": CONTAINER}, headers=headers
            ) as response:
                if response.status_code != 200:
                    await response.aread()
                    raise _refused("GET", path, response)
                async for piece in response.aiter_bytes():
                    take(piece)
        except httpx.TransportError as error:
            raise KubernetesUnreachable(f"the log of {pod} broke off: {error!r}") from None

    async def close(self) -> None:
        await self._client.aclose()

    async def _call(
        self,
        method: str,
        path: str,
        *,
        json: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
        quiet: int | None = None,
    ) -> dict[str, Any] | None:
        """Send a request and return the answer, or None if its status is `quiet`."""
        async for attempt in tenacity.AsyncRetrying(
            retry=tenacity.retry_if_exception_type(KubernetesUnreachable),
            stop=tenacity.stop_after_delay(self._patience),
            wait=tenacity.wait_exponential_jitter(multiplier=0.2, jitter=0.2, max=5.0),
            reraise=True,
        ):
            with attempt:
                response = await self._once(method, path, json, params)
                if response.status_code == quiet:
                    return None
                if response.is_error:
                    raise _refused(method, path, response)
                answer: dict[str, Any] = orjson.loads(response.content)
                return answer
        raise AssertionError("the retrying ends by returning or raising")

    async def _once(
        self, method: str, path: str, json: Mapping[str, Any] | None, params: Mapping[str, str] | None
    ) -> httpx.Response:
        headers = self._cluster.authorization()
        try:
            response = await self._client.request(method, path, json=json, params=params, headers=headers)
        except httpx.TransportError as error:
            raise KubernetesUnreachable(f"the Kubernetes API cannot be reached: {error!r}") from None
        if response.status_code == 429 or response.status_code >= 500:
            raise KubernetesUnreachable(
                f"the Kubernetes API answers {response.status_code} to {method} {path}"
            )
        return response


def _jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def _refused(method: str, path: str, response: httpx.Response) -> KubernetesRefused:
    try:
        detail = orjson.loads(response.content)["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        detail = cut_end(response.text, 500)
    message = f"the Kubernetes API answers {response.status_code} to {method} {path}: {detail}"
    return KubernetesRefused(message, response.status_code)
