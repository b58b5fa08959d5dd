"""A reference to an action for its callers: its ref, and the types of its parameters and its result."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from penstock.errors import OutsideRun
from penstock.language.terms.sources import caller, of_frame
from penstock.run.action_call import ActionCall as ActionCall
from penstock.run.call_interceptor import CALL_INTERCEPTOR

if TYPE_CHECKING:
    from penstock.run.context import RunContext

P = ParamSpec("P")
R = TypeVar("R")


class Starter(Protocol):
    """The part of a client that this module needs. `outer` is the client that was connected before it and encloses it."""

    outer: Starter | None
    closed: bool

    async def start(self, ref: str, params: Mapping[str, Any] | None = None, /) -> UUID: ...
    async def run(self, ref: str, params: Mapping[str, Any] | None = None, /) -> Any: ...


STARTER: ContextVar[Starter | None] = ContextVar("penstock.starter", default=None)
"""The innermost connected client of the running code."""


class ActionRef(Generic[P, R]):
    """A reference to an action that is defined elsewhere. `like` is a function with the same parameters and result, for
    type checkers and positional parameters. That function is never called. In a workflow function a call of the
    reference adds a task.

        charge = ActionRef("shop.charge", like=charge_in_words)
        await charge.start(order=7)
    """

    @overload
    def __init__(self: ActionRef[P, R], ref: str, *, like: Callable[P, Awaitable[R]]) -> None: ...
    @overload
    def __init__(self: ActionRef[P, R], ref: str, *, like: Callable[P, R]) -> None: ...
    @overload
    def __init__(self: ActionRef[..., Any], ref: str) -> None: ...
    def __init__(self, ref: str, *, like: Callable[..., Any] | None = None) -> None:
        self.ref = ref
        self.function = like

    # The declared type is Any, as for an action: the call returns a stand-in for the result.
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Add a task that runs this action to the workflow function that is being read. Raises DefinitionError
        anywhere else."""
        record = CALL_INTERCEPTOR.get()
        if record is None:
            raise of_frame(caller()).wrong(
                f"{self.ref} is a reference to an action, and has no function to call here",
                "Start it: await reference.start(...), or client.start(reference, {...}). For an HTTP request "
                "declare an action with http_action.",
            )
        return record(self, args, kwargs)

    def call(self, *args: P.args, **kwargs: P.kwargs) -> ActionCall[R]:
        """Return the action with these parameters, to pass to a client. The call of this method starts nothing. Raises
        TypeError for parameters that the function does not take."""
        return ActionCall(self.ref, self.named_parameters(args, kwargs))

    async def start(self, *args: P.args, **kwargs: P.kwargs) -> UUID:
        """Start the action through the connected client (`async with Client.connect():`). Return the execution's id.
        Raises OutsideRun if no client is connected, and the errors of `Client.start`."""
        started: UUID = await connected().start(self.ref, self.named_parameters(args, kwargs))
        return started

    async def run(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Start the action and wait for its result. Raises OutsideRun if no client is connected, and the errors of
        `Client.run`."""
        result: R = await connected().run(self.ref, self.named_parameters(args, kwargs))
        return result

    def named_parameters(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a call by name. Raises TypeError if the action does not take them."""
        return named(self.function, args, kwargs)

    def __repr__(self) -> str:
        return f"<reference to {self.ref}>"


class RunStarter:
    """The starter inside an action: it starts executions through the run's worker."""

    outer: Starter | None = None
    closed = False

    def __init__(self, context: RunContext) -> None:
        self._context = context

    async def start(self, ref: str, params: Mapping[str, Any] | None = None, /) -> UUID:
        return await self._context.start(ref, params)

    async def run(self, ref: str, params: Mapping[str, Any] | None = None, /) -> Any:
        return await self._context.run(ref, params)


def connected() -> Starter:
    """Return the innermost connected client; without one, inside an action, its run. Raises OutsideRun if there is
    neither."""
    from penstock.run.context import CURRENT, RunContext

    client = open_starter()
    if client is None and (run := CURRENT.get()) is not None and run.outgoing is not None:
        client = RunStarter(RunContext(run))
    if client is None:
        raise OutsideRun(
            "no client is connected here",
            hint="Make this call inside `async with Client.connect():`, or call client.run(charge, {'order': 7}).",
        )
    return client


def open_starter() -> Starter | None:
    """Return the innermost connected client that is still open, or None. Clients may be closed in any order, and by
    other tasks than those that connected them."""
    client = STARTER.get()
    while client is not None and client.closed:
        client = client.outer
    return client


def named(
    function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters by name. Raises TypeError if the function does not take them."""
    if function is None:
        if args:
            raise TypeError("pass the parameters by name: without the function, their order is unknown")
        return dict(kwargs)
    bound = inspect.signature(function).bind(*args, **kwargs)
    spread = [p.name for p in bound.signature.parameters.values() if p.kind is p.VAR_KEYWORD]
    params = dict(bound.arguments)
    for name in spread:
        params |= params.pop(name, {})
    return params
