"""The start of an action or a workflow and the wait for its result, typed by the definition that is started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Union, overload

from penstock.client.checked_arguments import check_options, checks_arguments
from penstock.language.terms.action_ref import ActionCall, ActionRef

if TYPE_CHECKING:
    from penstock.client.submits import Submits
    from penstock.language.workflows.model import Workflow
    from penstock.store.executions.result_watch import ResultWatch

R = TypeVar("R")
Startable = Union[str, ActionRef[..., Any], ActionCall[Any], "Workflow"]
"""What can be started: a ref, what has one, or an action with its parameters."""


def named_start(
    target: Startable, params: Mapping[str, Any] | None = None
) -> tuple[str, Mapping[str, Any] | None]:
    """The ref of what is to be started, and its parameters."""
    if isinstance(target, ActionCall):
        return target.ref, {**target.parameters, **(params or {})}
    return (target if isinstance(target, str) else target.ref), params


@checks_arguments
class StartAndWait:
    """A client's `run`."""

    start: Any
    result: Any

    @overload
    async def run(self, target: ActionCall[R], /, *, timeout: float | None = None, **options: Any) -> R: ...
    @overload
    async def run(
        self,
        target: ActionRef[..., R],
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> R: ...
    @overload
    async def run(
        self,
        target: str | Workflow,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
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
        return await self._run(target, params, timeout, options)

    async def _run(
        self,
        target: Startable,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        options: Mapping[str, Any],
    ) -> Any:
        return await self.result(await self.start(target, params, **options), timeout=timeout)


class StartAndWatch(StartAndWait):
    """The `run` of a client that watches results itself."""

    _submits: Submits
    _watch: ResultWatch

    async def _run(
        self,
        target: Startable,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        options: Mapping[str, Any],
    ) -> Any:
        """Name the watcher of this client in the submit: the execution may end before a later statement could say that its end is
        awaited. Under a key the execution may be another one, which is waited for as any other."""
        if {"key", "connection"} & options.keys():
            return await super()._run(target, params, timeout, options)
        from penstock.client.starts import Request

        ref, params = named_start(target, params)
        with self._watch.expecting() as watcher:
            id = await self._submits.start(Request(ref, **options), params, None, watcher)
            return await self._watch.result(id, timeout=timeout, named=watcher is not None)


class BlockingStartAndWait:
    """The `run` of a client with blocking methods."""

    @overload
    def run(self, target: ActionCall[R], /, *, timeout: float | None = None, **options: Any) -> R: ...
    @overload
    def run(
        self,
        target: ActionRef[..., R],
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
    ) -> R: ...
    @overload
    def run(
        self,
        target: str | Workflow,
        params: Mapping[str, Any] | None = None,
        /,
        *,
        timeout: float | None = None,
        **options: Any,
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
