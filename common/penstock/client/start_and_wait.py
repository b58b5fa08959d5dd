"""The start of an action or a workflow and the wait for its result, typed by the definition that is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Union, overload

from penstock.client.checked_arguments import check_options, checks_arguments
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
"""What can be started: a ref, what has one, or an action with its parameters. Those beside an ActionCall are added to its own."""
Parameters = Mapping[str, Any] | None
Seconds = float | None


class Start(NamedTuple):
    """The arguments of one start."""

    target: Startable
    params: Parameters
    options: Mapping[str, Any]


def named_start(target: Startable, params: Parameters = None) -> tuple[str, Parameters]:
    """Return the ref of what is to be started, and its parameters."""
    if isinstance(target, ActionCall):
        return target.ref, {**target.parameters, **(params or {})}
    return (target if isinstance(target, str) else target.ref), params


@checks_arguments
class StartAndWait:
    """A client's `run`."""

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
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Start and wait `timeout` seconds at the most: the result. Takes what `start` takes, raises what `result`
        raises."""
        check_options(self.start, options)
        return await self._result_of(Start(target, params, options), timeout)

    async def _result_of(self, start: Start, timeout: Seconds) -> Any:
        execution_id = await self.start(start.target, start.params, **start.options)
        return await self.result(execution_id, timeout=timeout)


class StartAndWatch(StartAndWait):
    """The `run` of a client that watches results itself."""

    _submits: Submits
    _watch: ResultWatch

    async def _result_of(self, start: Start, timeout: Seconds) -> Any:
        """Name the watcher of this client in the submit: the execution may end before a later statement could say that its end is
        awaited. Under a key the execution may be another one, which is waited for as any other."""
        if {"key", "connection"} & start.options.keys():
            return await super()._result_of(start, timeout)
        from penstock.client.starts import Request

        ref, params = named_start(start.target, start.params)
        with self._watch.expecting() as watcher:
            id = await self._submits.start(Request(ref, **start.options), params, None, watcher)
            return await self._watch.result(id, timeout=timeout, named=watcher is not None)


class BlockingStartAndWait:
    """The `run` of a client with blocking methods."""

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
        timeout: float | None = None,
        **options: Any,
    ) -> Any:
        """Start and wait `timeout` seconds at the most: the result. Takes what
        `start` takes, raises what `result` raises."""
        client: Any = self  # attributes declared here would hide the types of those that clients have
        return client._thread.wait(client._client.run(target, params, timeout=timeout, **options))
