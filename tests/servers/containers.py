"""The servers in Docker containers, through testcontainers. Its own reaper removes them after a killed run."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

STOP = 60.0  # seconds


def engine_answers() -> bool:
    """Return true if a Docker engine of this machine answers; asked in under a second, without starting anything."""
    import docker
    from docker.errors import DockerException

    with warnings.catch_warnings():
        # Where there is no socket, the library leaves one of its own unclosed.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            with contextlib.closing(docker.from_env(timeout=1)) as client:
                return client.api.base_url.startswith("http+docker://") and bool(client.ping())
        except (DockerException, OSError):
            return False


class Container:
    """A container with fixed ports on 127.0.0.1, so that its address survives a restart."""

    def __init__(
        self,
        image: str,
        *,
        ports: Mapping[int, int],
        env: Mapping[str, str] | None = None,
        command: Sequence[str] | None = None,
    ) -> None:
        from testcontainers.core.container import DockerContainer

        container = DockerContainer(image).with_envs(**(env or {}))
        # Docker's own `ports` also take the address; `with_bind_ports` would open them to the network.
        bound: Any = {f"{inner}/tcp": ("127.0.0.1", outer) for inner, outer in ports.items()}
        container.ports.update(bound)
        if command is not None:
            container.with_command(list(command))
        self._outer = container.start()
        self._inner: Any = container.get_wrapped_container()

    @property
    def pid(self) -> int:
        self._inner.reload()
        return int(self._inner.attrs["State"]["Pid"])

    def start(self) -> None:
        self._inner.start()

    def signal(self, name: str) -> None:
        """Send a signal to its first process and wait until the container has ended."""
        self._inner.kill(signal=name)
        self._inner.wait(timeout=STOP)

    def remove(self) -> None:
        self._outer.stop()


def wait_until(ready: Callable[[], bool], what: str, seconds: float) -> None:
    """Poll `ready` until it is true. Raises TimeoutError, naming `what`."""
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what} was not ready within {seconds:.0f} s")
        time.sleep(0.1)
