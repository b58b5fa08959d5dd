"""A worker for Penstock in one file of plain Python. It speaks version 1 of the worker protocol, and shows all of it.

Read `Worker` beside docs/workers-in-any-language.md. Use it as it is, or write the same in another language.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import platform
import queue
import signal
import socket
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
PAUSE_S = 0.2
"""Seconds before the first repetition of a call. Each further one waits twice as long, at most 5 s."""


class Refused(Exception):
    """An answer that a repetition would not change."""

    def __init__(self, status: int, problem: Json) -> None:
        super().__init__(f"{status} {problem.get('detail', '')}")
        self.status = status
        self.kind = str(problem.get("type", "")).rpartition(":")[2]


class Gateways:
    """The gateways of an installation. A call that gets no answer is sent again, to the next of them."""

    def __init__(self, servers: str, token: str) -> None:
        self.servers = [urllib.parse.urlsplit(server.strip()) for server in servers.split(",")]
        self.headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        self.threads = threading.local()
        self.connections: dict[int, http.client.HTTPConnection] = {}

    def call(
        self, name: str, message: Json, *, wait: float = 0.0, until: Callable[[], bool] = lambda: False
    ) -> Json:
        """Send a message, and return the answer. Without one it is sent again, until `until()`. Raises Refused,
        TimeoutError."""
        pause = PAUSE_S
        while True:
            try:
                return self._send(name, json.dumps(message), wait + 15.0)
            except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
                if until():
                    raise TimeoutError(f"no answer to {name}: {error}") from error
                if name == "take":
                    message = {**message, "again": True}
                time.sleep(pause)
                pause = min(2 * pause, 5.0)

    def _send(self, name: str, body: str, timeout: float) -> Json:
        connection = getattr(self.threads, "connection", None)
        if connection is None:
            server = self.servers[0]
            kind = http.client.HTTPSConnection if server.scheme == "https" else http.client.HTTPConnection
            connection = self.threads.connection = kind(server.hostname or "", server.port, timeout=timeout)
            self.threads.path = server.path.rstrip("/")
            self.connections[threading.get_ident()] = connection
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            connection.request("POST", f"{self.threads.path}/api/v1/work/{name}", body, self.headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            self._leave(connection)
            raise
        if answer.status == 429 or answer.status >= 500:
            self._leave(connection)
            raise ConnectionError(f"{answer.status} {content[:200]!r}")
        if answer.status >= 400:
            raise Refused(answer.status, json.loads(content))
        return dict(json.loads(content)) if content else {}

    def hang_up(self, thread: threading.Thread) -> None:
        """End a call that a thread waits for. What a take was given goes back."""
        connection = self.connections.get(thread.ident or 0)
        if connection is not None and connection.sock is not None:
            with contextlib.suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _leave(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        self.threads.connection = None
        self.servers.append(self.servers.pop(0))


class Defer(Exception):
    """Raised by an action that continues later: after `delay` seconds it runs again, and is given `state`."""

    def __init__(self, delay: float, state: Any = None) -> None:
        super().__init__(f"deferred for {delay} s")
        self.delay, self.state = delay, state


class Failed(Exception):
    """Raised by an action that fails with a type and a say about its retry."""

    def __init__(self, type: str, message: str, **error: Any) -> None:
        super().__init__(message)
        self.error = {"type": type, "message": message, **error}


class Run:
    """An attempt. `cancelled` is set when its action has to end; `lost`: another worker may have it by now."""

    def __init__(self, worker: Worker, given: Json) -> None:
        self.worker = worker
        self.given = given
        self.key = {"execution": given["execution"], "attempt": given["attempt"]}
        self.cancelled = threading.Event()
        self.lost = self.told = self.given_up = False
        self.deadline = None if given["timeout"] is None else time.monotonic() + given["timeout"]
        self.lines = 0

    def log(self, line: str, stream: str = "log") -> None:
        self._write("log", "lines", {"stream": stream, "line": line[:16384]})

    def progress(self, done: float, text: str = "") -> None:
        self._write("progress", "reports", {"done": done, "text": text})

    def _write(self, name: str, list_name: str, item: Json) -> None:
        self.lines += 1
        self.worker.write(self, name, {list_name: [{**self.key, "seq": self.lines, **item}]})

    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline


class Worker:
    """A worker with `slots` threads. `actions` are functions by ref: each is called with its Run and the parameters."""

    def __init__(
        self,
        servers: str,
        token: str,
        actions: dict[str, Callable[..., Any]],
        *,
        name: str,
        routes: list[str],
        slots: int = 8,
    ) -> None:
        self.gateways = Gateways(servers, token)
        self.actions = actions
        self.slots = slots
        self.hello: Json = {
            "name": name, "routes": routes, "slots": slots, "actions": [{"ref": ref} for ref in actions],
            "language": "python", "sdk": f"reference/1 (python {platform.python_version()})",
        }  # fmt: skip
        self.runs: dict[str, Run] = {}
        self.draining = False
        self.stopping = threading.Event()
        self.free = threading.Semaphore(slots)
        self.inbox: queue.SimpleQueue[Run] = queue.SimpleQueue()
        self.answered_at = 0.0

    def run(self, grace: float = 30.0) -> None:
        """Take work and run it, until SIGTERM or SIGINT. Running attempts have `grace` seconds to end."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.stopping.set())
        try:
            self.begin()
        except TimeoutError:  # asked to stop before a gateway has answered
            return
        taking = threading.Thread(target=self.take, daemon=True)
        taking.start()
        for loop in (self.beat, *[self.play_all] * self.slots):
            threading.Thread(target=loop, daemon=True).start()
        self.stopping.wait()
        self.draining = True
        self.gateways.hang_up(taking)
        until = time.monotonic() + grace
        while self.runs and time.monotonic() < until:
            time.sleep(0.05)
        for run in list(
            self.runs.values()
        ):  # Python cannot end a thread: what is left goes to another worker
            run.given_up = True
            run.cancelled.set()
            self.finish(run, {"outcome": "handed_back"})
        with contextlib.suppress(
            TimeoutError, Refused
        ):  # the attempts are over, so nothing is lost without a bye
            self.gateways.call("bye", {}, until=lambda: True)

    def begin(self) -> None:
        """Begin a session. The attempts of an earlier one are lost. Raises Refused, and TimeoutError if the worker stops."""
        for run in list(self.runs.values()):
            self.lose(run)
        self.gateways.headers.pop("penstock-session", None)
        self.welcome = self.gateways.call("hello", self.hello, until=self.stopping.is_set)
        self.gateways.headers["penstock-session"] = self.welcome["session"]
        self.answered_at = time.monotonic()

    def take(self) -> None:
        while not self.stopping.is_set():
            self.free.acquire()
            slots = 1
            while self.free.acquire(blocking=False):
                slots += 1
            wait = min(20.0, self.welcome["wait_at_most"])
            message = {"request": str(uuid.uuid4()), "slots": slots, "wait": wait}
            attempts: list[Json] = []
            try:
                answer = self.gateways.call("take", message, wait=wait, until=self.stopping.is_set)
                attempts = answer["attempts"]
                if answer["drain"] and not attempts:
                    time.sleep(1.0)
            except (Refused, TimeoutError):
                time.sleep(PAUSE_S)  # the next heartbeat begins another session
            for given in attempts:
                run = self.runs[given["execution"]] = Run(self, given)
                self.inbox.put(run)
            for _ in range(slots - len(attempts)):
                self.free.release()

    def beat(self) -> None:
        while True:
            every = self.welcome["beat_every"]
            runs = list(self.runs.values())
            holding = [{**run.key, "cancelling": run.cancelled.is_set()} for run in runs]
            # With attempts in hand the answer may wait, so that a cancellation arrives at once.
            message = {"holding": holding, "draining": self.draining, "wait": every if runs else 0.0}
            began = time.monotonic()
            try:
                answer = self.gateways.call("beat", message, wait=every, until=self.is_silent)
                self.answered_at = began
                for run in runs:
                    if run.given["execution"] in answer["lost"]:
                        self.lose(run)
                    if run.given["execution"] in answer["cancel"]:
                        run.told = True
                        run.cancelled.set()
                self.draining = self.draining or answer["drain"]
            except TimeoutError:  # others have this worker's attempts soon
                for run in runs:
                    self.lose(run)
            except Refused as refused:
                if refused.kind == "UnknownSession":
                    with contextlib.suppress(TimeoutError):
                        self.begin()
            for run in runs:
                if run.is_late():
                    run.cancelled.set()
            if not runs or time.monotonic() - began < 0.05:
                time.sleep(min(0.2, every))

    def is_silent(self) -> bool:
        limit = self.welcome["lost_after"] - self.welcome["beat_every"] / 2
        return time.monotonic() > self.answered_at + limit

    def lose(self, run: Run) -> None:
        run.lost = True
        run.cancelled.set()

    def play_all(self) -> None:
        """Run attempts, one after the other."""
        while True:
            self.play(self.inbox.get())

    def play(self, run: Run) -> None:
        """Run an attempt and report its end."""
        try:
            result = self.actions[run.given["action"]](run, **run.given["parameters"])
            end = {"outcome": "completed", "result": result}
        except Defer as defer:
            end = {"outcome": "deferred", "delay": defer.delay, "state": defer.state}
        except Failed as failed:
            end = {"outcome": "failed", "error": failed.error}
        except Exception as error:
            kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
            failure = {"type": type(error).__name__, "message": str(error), "kinds": kinds}
            end = {"outcome": "failed", "error": failure}
        if run.told:  # a result that is there wins over the cancellation, and the gateway decides
            end = end if end["outcome"] == "completed" and not run.is_late() else {"outcome": "cancelled"}
        elif run.is_late():
            end = {"outcome": "timed_out"}
        if not run.given_up:
            self.finish(run, end)
        self.free.release()

    def finish(self, run: Run, end: Json) -> None:
        if not run.lost:
            try:
                self.write(run, "finish", {"ends": [{**run.key, **end}]})
            except Refused as refused:  # too large, or no JSON
                failure = {"type": "ResultRefused", "message": str(refused), "retryable": False}
                self.write(run, "finish", {"ends": [{**run.key, "outcome": "failed", "error": failure}]})
        self.runs.pop(run.given["execution"], None)

    def write(self, run: Run, name: str, message: Json) -> None:
        """Send a write about an attempt, unless the attempt is lost. Raises Refused."""
        if run.lost:
            return
        try:
            self.gateways.call(name, message, until=lambda: run.lost)
        except TimeoutError:
            pass
        except Refused as refused:
            if refused.kind not in ("ClaimLost", "UnknownSession"):
                raise
            self.lose(run)
