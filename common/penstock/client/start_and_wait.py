"""The method `run`, which starts an action or a workflow and waits for its result. Its types are those of the started
definition."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, overload

from penstock.client.checked_arguments import check_options, checks_arguments, timeout_seconds
from penstock.language.terms.action_ref import ActionCall, ActionRef

if TYPE_CHECKING:
    from penstock.client.submits import Submits
    from penstock.language.workflows.model import Workflow
    from penstock.store.executions.result_watch import ResultWatch

R = TypeVar("R")
Typed = ActionCall[R] | ActionRef[..., R]
"""A target whose result has a type that type checkers know."""
Untyped = Union[str, "Workflow"]
Startable = Typed[Any] | Untyped
"""The type of what can be started: a ref, an object with a ref, or an action with its parameters. Parameters beside an ActionCall
are added to its own."""
Parameters = Mapping[str, Any] | None
Seconds = float | timedelta | str | None


class Start(NamedTuple):
    """The arguments of one start."""

    target: Startable
    params: Parameters
    options: Mapping[str, Any]


def named_start(target: Startable, params: Parameters = None) -> tuple[str, Parameters]:
    """Return the ref and the parameters of a start."""
    if isinstance(target, ActionCall):
        return target.ref, {**target.parameters, **(params or {})}
    return (target if isinstance(target, str) else target.ref), params


@checks_arguments
class StartAndWait:
    """The method `run` of a client."""

    start: Any
    result: Any

    @overload
    async def run(
        self, target: Typed[R], params: Parameters = None, /, *, timeout: Seconds = None, **options: Any
    ) -> R: ...
    @overload
    async def run(
        self, target: Untyped, params: Parameters = None, /, *, timeout: Seconds = None, **options: Any
    ) -> Any: ...
    async def run(
        self,
        target: Startable,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | timedelta | str | None = None,
        **options: Any,
    ) -> Any:
        """Start an execution, and return its result. Wait at most `timeout` (60, "5m"). Takes the options of `start`, and
        raises the errors of `result`."""
        check_options(self.start, options)
        return await self._result_of(Start(target, params, options), timeout)

    async def _result_of(self, start: Start, timeout: Seconds) -> Any:
        execution_id = await self.start(start.target, start.params, **start.options)
        return await self.result(execution_id, timeout=timeout)


class StartAndWatch(StartAndWait):
    """The method `run` of a client that watches results itself."""

    _submits: Submits
    _watch: ResultWatch

    async def _result_of(self, start: Start, timeout: Seconds) -> Any:
        """Start an execution that is watched by this client from the start, and return its result. The submission
        itself names the watcher, since the execution may end before a later statement could.

        Under a key or with a debounce time it may be an earlier execution, which is waited for like any other.
        """
        if {"key", "connection", "debounce"} & start.options.keys():
            return await super()._result_of(start, timeout)
        from penstock.client.starts import Request

        ref, params = named_start(start.target, start.params)
        with self._watch.expecting() as watcher:
            id = await self._submits.start(Request(ref, **start.options), params, None, watcher)
            return await self._watch.result(id, timeout=timeout_seconds(timeout), named=watcher is not None)


class BlockingStartAndWait:
    """The method `run` of a client with blocking methods."""

    @overload
    def run(
        self, target: Typed[R], params: Parameters = None, /, *, timeout: Seconds = None, **options: Any
    ) -> R: ...
    @overload
    def run(
        self, target: Untyped, params: Parameters = None, /, *, timeout: Seconds = None, **options: Any
    ) -> Any: ...
    def run(
        self,
        target: Startable,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | timedelta | str | None = None,
        **options: Any,
    ) -> Any:
        """Start an execution, and return its result. Wait at most `timeout` (60, "5m"). Takes the options of `start`, and
        raises the errors of `result`."""
        client: Any = self  # annotated as Any: attributes declared here would hide the client's own types
        return client._thread.wait(client._client.run(target, params, timeout=timeout, **options))
