"""The fakes of actions, which replace their code by a result, an error or a function, set a duration, or lose the
worker."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import Any, Literal

from penstock.errors import InvalidInput
from penstock.language.terms.options import did_you_mean
from penstock.run.run import RunnableAction

Loss = Literal["before", "after"]
"""The instant at which a worker is lost: before it has run the action, or after that with an unreported result."""


@dataclass(slots=True)
class Fake:
    """A replacement for attempts of an action (`target` is its ref) or of a task (its name), `remaining` times
    (None: always)."""

    target: str
    function: Callable[..., Any] | None = None
    """The function that runs in place of the action, or None to run the action itself."""
    takes: float = 0.0
    """The duration of the attempt in seconds, on the simulation's clock."""
    loss: Loss | None = None
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class FakeAction:
    """An action with a replaced function. Parameters are bound to the original function's signature."""

    ref: str
    function: Callable[..., Any]
    bind_as: RunnableAction | None
    executor: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_coroutine(self) -> bool:
        return iscoroutinefunction(self.function)

    def bind(self, params: Mapping[str, Any], /) -> dict[str, Any]:
        if self.bind_as is None or self.bind_as.function is None:
            return dict(params)
        return self.bind_as.bind(params)


def returning(value: Any) -> Callable[..., Any]:
    return lambda **_: value


def raising(error: BaseException | type[BaseException]) -> Callable[..., Any]:
    def fail(**_: Any) -> Any:
        raise error

    return fail


class Fakes:
    """The fakes of a simulation. The first unused fake for an attempt replaces the action."""

    def __init__(self) -> None:
        self._fakes: list[Fake] = []

    def add(self, fake: Fake) -> None:
        self._fakes.append(fake)

    def take(self, ref: str, path: str) -> Fake | None:
        """Return the fake for the next attempt of an action or task, and use it up by one. None without a fake."""
        for fake in self._fakes:
            if fake.target in (ref, path) and fake.remaining != 0:
                if fake.remaining is not None:
                    fake.remaining -= 1
                return fake
        return None

    def check(self, names: Collection[str]) -> None:
        """Raise InvalidInput for a fake of an unknown name, which would silently replace nothing."""
        for target in self.targets:
            if "." not in target and target not in names:
                raise InvalidInput(f"there is no task {target!r} to fake", hint=did_you_mean(target, names))

    @property
    def targets(self) -> set[str]:
        return {fake.target for fake in self._fakes}
