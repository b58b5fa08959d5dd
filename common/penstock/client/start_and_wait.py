"""The method `run`, which starts an action or a workflow and waits for its result. Its types are those of the started
definition."""

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
"""The type of what can be started: a ref, an object with a ref, or an action with its parameters."""


def named_start(
    target: Startable, params: Mapping[str, Any] | None = None
) -> tuple[str, Mapping[str, Any] | None]:
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
        """Start an execution, and return its result. Wait at most `timeout` seconds. Takes the options of `start`, and
        raises the errors of `result`."""
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
    """The method `run` of a client that watches results itself."""

    _submits: Submits
    _watch: ResultWatch

    async def _run(
        self,
        target: Startable,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        options: Mapping[str, Any],
    ) -> Any:
        """Start an execution that is watched by this client from the start, and return its result. The submission
        itself names the watcher, since the execution may end before a later statement could.

        Under a key it may be an earlier execution, which is waited for like any other.
        """
        if {"key", "connection"} & options.keys():
            return await super()._run(target, params, timeout, options)
        from penstock.client.starts import Request

        ref, params = named_start(target, params)
        with self._watch.expecting() as watcher:
            id = await self._submits.start(Request(ref, **options), params, None, watcher)
            return await self._watch.result(id, timeout=timeout, named=watcher is not None)


class BlockingStartAndWait:
    """The method `run` of a client with blocking methods."""

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
        """Start an execution, and return its result. Wait at most `timeout` seconds. Takes the options of `start`, and
        raises the errors of `result`."""
        client: Any = self  # typed Any: attributes declared here would hide the types of the client's own
        return client._thread.wait(client._client.run(target, params, timeout=timeout, **options))
