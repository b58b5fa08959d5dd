"""A stand-in for a Kubernetes API server, doing what the documentation says of Jobs, pods and logs.

It really runs the command of the container, as a process of this machine: so exit codes, logs and deletion
are those of real programs. Names are unique (409), a Job's pod carries the label `job-name`, conditions end
with `Complete` or `Failed`, `propagationPolicy=Foreground` keeps the Job until its pod has ended, which gets
SIGTERM and, after its grace period, SIGKILL. No image is pulled; `image="missing"` waits for ever in
ImagePullBackOff.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "a-service-account-token"
JOBS = re.compile(r"^/apis/batch/v1/namespaces/([a-z0-9-]+)/jobs(?:/([a-z0-9-]+))?$")
PODS = re.compile(r"^/api/v1/namespaces/([a-z0-9-]+)/pods(?:/([a-z0-9-]+)/log)?$")
Json = dict[str, Any]


class Pod:
    """One container, which is a process with its output in a file."""

    def __init__(self, job: Json) -> None:
        template = job["spec"]["template"]
        name = job["metadata"]["name"]
        self.name = f"{name}-x7k2p"
        self.labels = {**template["metadata"]["labels"], "job-name": name}
        self.created = datetime.now(UTC).isoformat()
        self.grace = template["spec"]["terminationGracePeriodSeconds"]
        self.out_of_memory = False
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.log, self.termination_log = os.memfd_create(self.name), os.memfd_create("termination")
        container = template["spec"]["containers"][0]
        if container["image"] == "missing":
            return
        env = {each["name"]: each["value"] for each in container["env"]}
        self.process = subprocess.Popen(
            [*container["command"], *container.get("args", [])],
            env={"PATH": os.environ["PATH"], "TERMINATION_LOG": f"/dev/fd/{self.termination_log}", **env},
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=subprocess.STDOUT,
            pass_fds=[self.termination_log],
            start_new_session=True,
        )

    def exit_code(self) -> int | None:
        if self.process is None:
            return None
        with self.lock:
            code = self.process.poll()
        return 128 - code if code is not None and code < 0 else code

    def end(self) -> None:
        """SIGTERM, the grace period, SIGKILL."""
        if self.process is None:
            return
        self._signal(signal.SIGTERM)
        give_up = time.monotonic() + self.grace
        while self.exit_code() is None and time.monotonic() < give_up:
            time.sleep(0.01)
        self._signal(signal.SIGKILL)
        with self.lock:
            self.process.wait()

    def _signal(self, number: int) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)

    def read(self, fd: int) -> bytes:
        return os.pread(fd, 10_000_000, 0)

    def state(self) -> Json:
        if self.process is None:
            message = "Back-off pulling image"
            return {"waiting": {"reason": "ImagePullBackOff", "message": message}}
        code = self.exit_code()
        if code is None:
            return {"running": {"startedAt": self.created}}
        reason = "OOMKilled" if self.out_of_memory else "Completed" if code == 0 else "Error"
        terminated: Json = {"exitCode": code, "reason": reason}
        if written := self.read(self.termination_log)[:4096]:
            terminated["message"] = written.decode()
        return {"terminated": terminated}

    def as_json(self) -> Json:
        metadata = {"name": self.name, "labels": self.labels, "creationTimestamp": self.created}
        return {
            "metadata": metadata,
            "status": {"containerStatuses": [{"name": "action", "state": self.state()}]},
        }


class FakeKubernetes:
    """Jobs by (namespace, name). `refusals` are statuses to answer the next requests with."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], Json] = {}
        self.pods: dict[tuple[str, str], Pod] = {}
        self.all_pods: list[Pod] = []
        self.created: list[Json] = []
        self.refusals: list[int] = []
        self.unauthorized = 0
        self.lock = threading.RLock()
        self.url = ""

    def create(self, namespace: str, job: Json) -> tuple[int, Json]:
        key = (namespace, job["metadata"]["name"])
        with self.lock:
            if key in self.jobs:
                return 409, _status(409, f'jobs.batch "{key[1]}" already exists')
            self.created.append(job)
            self.jobs[key] = {**job, "started": time.monotonic()}
            self.pods[key] = Pod(job)
            self.all_pods.append(self.pods[key])
            return 201, job

    def get(self, namespace: str, name: str) -> tuple[int, Json]:
        key = (namespace, name)
        with self.lock:
            if key not in self.jobs:
                return 404, _status(404, f'jobs.batch "{name}" not found')
            job, code = self.jobs[key], self.pods[key].exit_code()
            limit = job["spec"].get("activeDeadlineSeconds")
            if code is None and limit is not None and time.monotonic() - job["started"] > limit:
                self.pods[key].end()
                job["failed"] = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded"}
            conditions: list[Json] = []
            if "failed" in job:
                conditions = [{"type": "FailureTarget", "status": "True"}, job["failed"]]
            elif code == 0:
                conditions = [
                    {"type": "SuccessCriteriaMet", "status": "True"},
                    {"type": "Complete", "status": "True"},
                ]
            elif code is not None:
                reason = {"reason": "BackoffLimitExceeded", "message": "Job has reached the backoff limit"}
                conditions = [{"type": "Failed", "status": "True", **reason}]
            return 200, {**job, "status": {"conditions": conditions}}

    def delete(self, namespace: str, name: str, policy: str) -> tuple[int, Json]:
        key = (namespace, name)
        with self.lock:
            if key not in self.jobs:
                return 404, _status(404, f'jobs.batch "{name}" not found')
            pod = self.pods[key]
        if policy == "Foreground":
            threading.Thread(target=self._end, args=(key, pod)).start()
        else:
            with self.lock:
                self.jobs.pop(key, None)
            threading.Thread(target=pod.end).start()
        return 200, self.jobs.get(key, {})

    def _end(self, key: tuple[str, str], pod: Pod) -> None:
        pod.end()
        with self.lock:
            self.jobs.pop(key, None)
            self.pods.pop(key, None)

    def select(self, kind: str, namespace: str, selector: str) -> Json:
        wanted = dict(part.split("=", 1) for part in selector.split(","))
        with self.lock:
            if kind == "jobs":
                found = [self.get(*key)[1] for key in self.jobs if key[0] == namespace]
            else:
                found = [pod.as_json() for key, pod in self.pods.items() if key[0] == namespace]
        return {"items": [each for each in found if wanted.items() <= each["metadata"]["labels"].items()]}

    def pod_log(self, namespace: str, name: str) -> tuple[int, bytes]:
        for (where, _), pod in self.pods.items():
            if where == namespace and pod.name == name:
                return 200, pod.read(pod.log)
        return 404, json.dumps(_status(404, "not found")).encode()


@contextmanager
def serving() -> Iterator[FakeKubernetes]:
    """The server on a port of the loopback interface. What still runs at the end is killed."""
    fake = FakeKubernetes()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
    fake.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for pod in fake.all_pods:
            pod.grace = 0
            pod.end()
            os.close(pod.log)
            os.close(pod.termination_log)


def kubeconfig(fake: FakeKubernetes) -> str:
    """A kubeconfig for it, as YAML (JSON is YAML)."""
    return json.dumps(
        {
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "c", "user": "u", "namespace": "jobs"}}],
            "clusters": [{"name": "c", "cluster": {"server": fake.url}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        }
    )


def _status(code: int, message: str) -> Json:
    return {"kind": "Status", "status": "Failure", "code": code, "message": message}


def _handler(fake: FakeKubernetes) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else {}
            status, said = self.route(body)
            content = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def route(self, body: Json) -> tuple[int, Json | bytes]:
            url = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(url.query).items()}
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                fake.unauthorized += 1
                return 401, _status(401, "Unauthorized")
            if fake.refusals:
                code = fake.refusals.pop(0)
                return code, _status(code, "refused for a test")
            if (match := JOBS.match(url.path)) is not None:
                namespace, name = match.groups()
                if self.command == "POST":
                    return fake.create(namespace, body)
                if self.command == "DELETE":
                    return fake.delete(namespace, name, query.get("propagationPolicy", "Background"))
                if name is not None:
                    return fake.get(namespace, name)
                return 200, fake.select("jobs", namespace, query["labelSelector"])
            if (match := PODS.match(url.path)) is not None:
                namespace, name = match.groups()
                if name is not None:
                    return fake.pod_log(namespace, name)
                return 200, fake.select("pods", namespace, query["labelSelector"])
            return 404, _status(404, "the server could not find the requested resource")

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    return Handler
