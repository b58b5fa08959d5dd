"""The decorator `@action`, which makes an action of a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, ParamSpec, Protocol, overload

from pydantic import ValidationError
from typing_extensions import TypeVar

from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.definitions.batch import Batch
from penstock.language.definitions.breaker import Breaker
from penstock.language.definitions.declaration import remember
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.program_actions import checked_options
from penstock.language.definitions.qualified_name import Pack, pack_of, qualified
from penstock.language.definitions.signature import batch_signature_of, signature_of
from penstock.language.policies.policies import Recovery, RetryPolicy, Timeouts
from penstock.language.terms.options import Problem, problems, read_options, refusal
from penstock.language.terms.sources import Source, caller, of_code, of_frame
from penstock.run.batch_item import Item

P = ParamSpec("P")
R = TypeVar("R")
B = TypeVar("B", default=None)
B_co = TypeVar("B_co", covariant=True, default=None)
"""The type of the option `batch`, which decides what the function takes."""


class Decorator(Protocol[B_co]):
    """The decorator that `@action(...)` returns. The result type of a coroutine function is the type that it resolves
    to. With a batch, the action takes the parameters of one item by name, and returns the result of one item."""

    @overload
    def __call__(
        self: Decorator[Batch | Mapping[str, Any]],
        function: Callable[[list[Item[Any]]], Coroutine[Any, Any, Sequence[R | Exception]]],
        /,
    ) -> Action[..., R]: ...
    @overload
    def __call__(
        self: Decorator[Batch | Mapping[str, Any]],
        function: Callable[[list[Item[Any]]], Sequence[R | Exception]],
        /,
    ) -> Action[..., R]: ...
    @overload
    def __call__(self: Decorator[None], function: Callable[P, Coroutine[Any, Any, R]], /) -> Action[P, R]: ...
    @overload
    def __call__(self: Decorator[None], function: Callable[P, R], /) -> Action[P, R]: ...


@overload
def action(function: Callable[P, Coroutine[Any, Any, R]], /) -> Action[P, R]: ...


@overload
def action(function: Callable[P, R], /) -> Action[P, R]: ...


@overload
def action(
    *,
    ref: str | None = None,
    pack: str | Pack | None = None,
    description: str | None = None,
    executor: str | None = None,
    options: Mapping[str, Any] | None = None,
    route: str | None = None,
    labels: Mapping[str, str] | None = None,
    title: str | None = None,
    run_labels: Mapping[str, str] | None = None,
    searchable: Sequence[str] | None = None,
    retry: RetryPolicy | Mapping[str, Any] | int | None = None,
    timeout: Any = None,
    timeouts: Timeouts | Mapping[str, Any] | None = None,
    recovery: Recovery | Mapping[str, Any] | None = None,
    on_worker_loss: Literal["rerun", "fail"] | None = None,
    max_recoveries: int | None = None,
    limits: Limit | Sequence[Limit] | None = None,
    breaker: Breaker | Mapping[str, Any] | None = None,
    warn_after: Any = None,
    batch: B = ...,
    on_success: object = None,
    on_failure: object = None,
) -> Decorator[B]: ...


def action(
    function: Callable[..., Any] | None = None,
    /,
    *,
    ref: str | None = None,
    pack: str | Pack | None = None,
    description: str | None = None,
    **options: Any,
) -> Any:
    """Make an action of a function, sync or async: `@action` or `@action(retry=3)`.

    Its ref is `<pack>.<function name>`, with the pack from `pack=` or from `pack = Pack("shop")` in its module.
    Annotations become the schemas of parameters and result, the docstring the description. The options are those of
    `ActionOptions`. Raises DefinitionError if the ref, an annotation or an option is not valid.
    """
    frame = caller()
    names = {} if frame.f_code.co_name == "<module>" else dict(frame.f_locals)

    def declare(function: Callable[..., Any]) -> Action[..., Any]:
        values = {name: value for name, value in options.items() if value is not None}
        declared = of_function(
            function, values, ref=ref, pack=pack, description=description, names=names, source=of_frame(frame)
        )
        remember(declared, frame)
        return declared

    return declare if function is None else declare(function)


def of_function(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    *,
    ref: str | None = None,
    pack: str | Pack | None = None,
    description: str | None = None,
    names: Mapping[str, Any] | None = None,
    source: Source,
    in_yaml: bool = False,
) -> Action[..., Any]:
    """Return the action of a function. Raises DefinitionError, at `source` if the function has no source file."""
    if isinstance(function, Action):
        raise source.wrong(f"{function.ref} is an action already", "Use .with_options(ref=...) to vary it.")
    plain = inspect.unwrap(function)
    if not inspect.isfunction(plain):
        raise source.wrong(f"{function!r} is not a Python function", "Write a def around it.")
    if not in_yaml:
        source = of_code(plain.__code__)
    if inspect.isgeneratorfunction(plain) or inspect.isasyncgenfunction(plain):
        raise source.wrong(
            f"{plain.__name__} is a generator", "An action returns its result at once, as a list."
        )
    first = next(iter(inspect.signature(plain).parameters), None)
    if first in ("self", "cls"):
        raise source.wrong(
            f"{plain.__name__} takes {first!r}, as a method does",
            f"An action is a function: take {first!r} away. Data about the run is in current().",
        )
    pack_name = pack.name if isinstance(pack, Pack) else pack
    if pack_name is None and "." not in (ref or ""):
        module_pack = pack_of(plain.__globals__)
        if module_pack is None:
            raise source.wrong(
                f"action {ref or plain.__name__} belongs to no pack",
                "Put pack = Pack('shop') at the top of the module, or write @action(pack='shop').",
            )
        pack_name = module_pack.name
    whole = qualified(ref or plain.__name__, pack_name)
    options = qualified_callbacks(options, pack_name or whole.partition(".")[0])
    choices = read_options(ActionOptions, options, source, f"action {whole}")
    executor = choices.executor or "thread"
    try:
        checked_options(executor, choices.options)
    except ValidationError as error:
        found_wrong = [Problem(("options", *p.at), p.message, p.hint) for p in problems(error)]
        raise refusal(f"action {whole}", found_wrong, source) from None
    if not isinstance(description, str | None):
        raise source.at(("description",)).wrong(
            f"action {whole}: description is not text", "Put it in quotes."
        )
    read_signature = signature_of if choices.batch is None else batch_signature_of
    signature = read_signature(function, whole, source, names)
    if signature.durable and choices.executor not in (None, "async"):
        raise source.wrong(f"action {whole} is durable, and runs on the event loop", "Leave out executor=.")
    return Action(
        whole,
        choices=choices,
        parameters_schema=signature.parameters,
        result_schema=signature.result,
        bind=signature.bind,
        source=source,
        function=function,
        durable=signature.durable,
        description=inspect.getdoc(plain) or "" if description is None else description,
    )


def qualified_callbacks(options: Mapping[str, Any], pack: str) -> dict[str, Any]:
    """Return the options with the pack in front of each callback that was written without one."""
    out = dict(options)
    for name in ("on_success", "on_failure"):
        if name in out:
            several = out[name] if isinstance(out[name], list | tuple) else [out[name]]
            out[name] = [qualified(ref, pack) if isinstance(ref, str) else ref for ref in several]
    return out
