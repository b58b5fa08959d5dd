"""Actions: runnable definitions, each with its parameters, its policies and the place where it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, ParamSpec, TypeVar

from pydantic import BeforeValidator, Field, field_validator

from penstock.errors import DefinitionError
from penstock.language.definitions.batch import Batch
from penstock.language.definitions.breaker import Breaker
from penstock.language.definitions.document import Document
from penstock.language.definitions.durable_functions import code_digest
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.qualified_name import Ref, checked_ref
from penstock.language.definitions.schedule import Schedule
from penstock.language.definitions.signature import Bind
from penstock.language.expressions.template_checks import Title
from penstock.language.policies.policies import Policies
from penstock.language.schemas import parameters_schema, payload_schema
from penstock.language.schemas.searchable import check_searchable
from penstock.language.terms import labels as labels_
from penstock.language.terms.action_ref import ActionRef, named
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.executor_names import BATCHING
from penstock.language.terms.options import Items, Wrong, did_you_mean, read_options
from penstock.language.terms.parameter_paths import is_label, meant_label
from penstock.language.terms.routing import RoutingRule
from penstock.language.terms.run_labels import RunLabels
from penstock.language.terms.sources import Source
from penstock.run.call_interceptor import CALL_INTERCEPTOR
from penstock.run.run import executor_name

P = ParamSpec("P")
R = TypeVar("R")


def _several(value: object) -> object:
    return value if isinstance(value, list | tuple) else [value]


Refs = Annotated[Items[Ref], BeforeValidator(_several)]


class ActionOptions(Policies):
    """The options of an action, next to its function or its command. Short forms: `timeout` stands for
    `timeouts.attempt`, `on_worker_loss` and `max_recoveries` for the fields of `recovery`."""

    thing: ClassVar[str] = "action"

    executor: Annotated[str, Field(strict=True, pattern=r"^[a-z][a-z0-9_]{0,62}$")] | None = None
    """The task executor that runs the action: async, thread, process, command, http, kubernetes, dask, ray, remote
    (a worker that calls a gateway), or one of your own."""
    route: str | None = None
    """The work queue of the action, which overrides the configured routes."""
    labels: dict[str, str] = Field(default_factory=dict)
    """The labels that a worker must carry to run the action, such as {"gpu": "a100"}."""
    title: Title = None
    """The title of its executions in lists, such as "dunning of {{ parameters.customer }}". Secrets are masked."""
    run_labels: RunLabels = Field(default_factory=dict)
    """The labels of its executions, such as {"team": "billing"}, by which lists find them."""
    searchable: Items[str] = ()
    """The names of parameters that become labels of an execution, so that lists find it by their values. A text of more than
    200 characters gets no label, nor does a parameter of an encrypted tenant."""
    limits: Annotated[Items[Limit], BeforeValidator(_several)] = ()
    breaker: Breaker | None = None
    """The breaker, which stops the calls while too many of them fail:
    {"failures": 20, "of": 50, "within": "1m", "probe": "30s"}."""
    warn_after: PositiveDuration | None = None
    """The time from its first start after which an execution that has not ended is late: rules of
    `penstock.execution.late` are notified. The execution goes on."""
    batch: Batch | None = None
    """The batch, in which the function gets several executions in one call: {"size": 100, "within": "200ms", "by": "tenant_id"}.
    For functions of the task executors async, thread and process."""
    on_success: Refs = ()
    """Actions to run after a success. Their parameters are `execution`, `status`, `result` and `error`."""
    on_failure: Refs = ()
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the task executor: the command, the URL, the image, a memory limit."""

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        for short, long, name in (
            ("timeout", "timeouts", "attempt"),
            ("on_worker_loss", "recovery", "on_worker_loss"),
            ("max_recoveries", "recovery", "max_recoveries"),
        ):
            if short not in values:
                continue
            whole = values.get(long, {})
            if not isinstance(whole, Mapping) or name in whole:
                raise Wrong(f"{short} and {long} both given", f"Write it inside {long} alone.")
            values[long] = {**whole, name: values.pop(short)}
        return values

    @classmethod
    def names(cls) -> list[str]:
        return [*super().names(), "timeout", "on_worker_loss", "max_recoveries"]

    @field_validator("labels")
    @classmethod
    def _are_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        try:
            for name, value in labels.items():
                labels_.check_label(name, value)
        except ValueError as error:
            raise Wrong(str(error), "Write labels={'gpu': 'a100'}.") from None
        return labels

    @field_validator("route")
    @classmethod
    def _is_route(cls, route: str | None) -> str | None:
        if route is not None:
            try:
                RoutingRule("**", route)
            except DefinitionError as error:
                raise Wrong(error.message, error.hint) from None
        return route


class Action(ActionRef[P, R]):
    """A runnable definition: a Python function (made by `@action`), a command, a URL or an image.

    Calling it calls the function directly, and schedules nothing. To run it as an execution, start it (`await
    charge.start(order=7)`, `await client.run(charge, {"order": 7})`), or have a rule, a workflow or a schedule do so.
    """

    kind = "action"

    def __init__(
        self,
        ref: str,
        *,
        choices: ActionOptions,
        parameters_schema: Mapping[str, Any],
        result_schema: Mapping[str, Any] | None,
        bind: Bind,
        source: Source,
        function: Callable[..., Any] | None = None,
        description: str = "",
        folder: Path | None = None,
        durable: bool = False,
    ) -> None:
        """Create an action. Use `@action`, `command_action`, `http_action` or `kubernetes_action` instead. Raises
        DefinitionError if the ref or an option is not valid."""
        try:
            self.ref = checked_ref(ref)
        except Wrong as error:
            raise source.wrong(f"action {error}", error.hint) from None
        try:
            check_searchable(choices.searchable, parameters_schema)
        except Wrong as error:
            raise source.wrong(f"action {ref}: searchable {error}", error.hint) from None
        if choices.batch is not None:
            _check_batch(ref, choices.batch, choices.executor, function, parameters_schema, source)
        self.choices = choices
        self.function = function
        self.is_coroutine = inspect.iscoroutinefunction(function)
        self.description = description
        self.parameters_schema = dict(parameters_schema)
        self.result_schema = None if result_schema is None else dict(result_schema)
        self.bind = bind
        """The function that turns an execution's parameters into keyword arguments. Raises InvalidInput."""
        self.source = source
        self.durable = durable
        """True if the function takes a DurableContext, so that it resumes where it was after a crash."""
        self.folder = folder
        """The pack's folder, in which the commands of the pack are looked up. None for actions of Python."""
        self.schedules: list[Schedule] = []
        self.limits = tuple(limit.of_action(self.ref, source) for limit in choices.limits)
        if choices.breaker is not None:
            self.limits += (Limit.of_breaker(choices.breaker, self.ref, source),)
        self.__doc__ = description

    @property
    def pack(self) -> str:
        return self.ref.partition(".")[0]

    @property
    def name(self) -> str:
        return self.ref.partition(".")[2]

    @property
    def executor(self) -> str | None:
        """Return the task executor that the action asks for, or None."""
        return self.choices.executor

    @property
    def options(self) -> Mapping[str, Any]:
        """Return the options for the task executor, such as the command or the URL. The program of a pack is given by
        its full path on this machine. The stored command has the path relative to the pack's folder."""
        if self.folder is None or self.executor != "command":
            return self.choices.options
        program, *arguments = self.choices.options["command"]
        if "/" in program:
            program = str(self.folder / program)
        return {"cwd": str(self.folder), **self.choices.options, "command": [program, *arguments]}

    @property
    def policies(self) -> Policies:
        return self.choices

    def named_parameters(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if self.choices.batch is not None:  # the function takes a list of items
            return named(None, args, kwargs)
        return super().named_parameters(args, kwargs)

    # The declared type is Any. The call returns the function's result, or in a workflow function a stand-in for it with
    # methods of its own. No other type fits both.
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        intercept = CALL_INTERCEPTOR.get()
        if intercept is not None:  # in a workflow function the call adds a task
            return intercept(self, args, kwargs)
        if self.function is None:
            raise self.source.wrong(
                f"action {self.ref} has no Python function to call", "Start it through a client."
            )
        return self.function(*args, **kwargs)

    def with_options(self, *, ref: str | None = None, **changes: Any) -> Action[P, R]:
        """Return a copy with some options changed, as `@action` takes them. Give the copy its own `ref` if both are to
        be applied. Raises DefinitionError if an option is not valid."""
        values: dict[str, Any] = {name: getattr(self.choices, name) for name in self.choices.model_fields_set}
        for name in changes.keys() & {"timeout", "on_worker_loss", "max_recoveries"}:
            whole = "timeouts" if name == "timeout" else "recovery"
            values[whole] = getattr(self.choices, whole).written()
            values[whole].pop("attempt" if name == "timeout" else name, None)
        choices = read_options(ActionOptions, {**values, **changes}, self.source, f"action {self.ref}")
        if (choices.batch is None) != (self.choices.batch is None):
            raise self.source.wrong(
                f"action {self.ref}: its function takes {'one execution' if choices.batch else 'a batch'}",
                "Write the batch where the function is declared: @action(batch=Batch(100)).",
            )
        return self._varied(ref=ref or self.ref, choices=choices)

    def with_schemas(self, *, parameters: Any = None, result: Any = None) -> Action[P, R]:
        """Return a copy with these schemas in place of the annotations' schemas. Raises DefinitionError if a schema is
        not valid."""
        changes: dict[str, Any] = {}
        for name, schema, make in (
            ("parameters", parameters, parameters_schema),
            ("result", result, payload_schema),
        ):
            if schema is not None:
                try:
                    changes[f"{name}_schema"] = make(schema)
                except Wrong as error:
                    raise self.source.at((name,)).wrong(
                        f"action {self.ref}: {name} {error}", error.hint
                    ) from None
        return self._varied(**changes)

    def _varied(self, **changes: Any) -> Action[P, R]:
        same: dict[str, Any] = {
            "ref": self.ref,
            "choices": self.choices,
            "parameters_schema": self.parameters_schema,
            "result_schema": self.result_schema,
            "bind": self.bind,
            "source": self.source,
            "function": self.function,
            "description": self.description,
            "folder": self.folder,
            "durable": self.durable,
        }
        return Action(**{**same, **changes})

    def body(self) -> dict[str, Any]:
        """Return the stored body, without defaults and without limits and the breaker, which are separate definitions."""
        body = self.choices.written()
        for name in ("limits", "breaker"):
            body.pop(name, None)
        if self.choices.batch is not None:
            body["batch"] = self.choices.batch.numbers()
        body |= {"ref": self.ref, "executor": executor_name(self), "parameters": self.parameters_schema}
        if self.result_schema is not None:
            body["result"] = self.result_schema
        if self.durable and self.function is not None:
            body["durable"] = code_digest(self.function)
        if self.description:
            body["description"] = self.description
        return body

    def document(self) -> Document:
        return Document.of(self.kind, self.ref, self.body(), self.source)

    def parts(self) -> Iterator[Any]:
        """Yield the action, its limits and its schedules."""
        yield self
        yield from self.limits
        yield from self.schedules

    def __repr__(self) -> str:
        return f"<action {self.ref}>"


def _check_batch(
    ref: str,
    batch: Batch,
    executor: str | None,
    function: Callable[..., Any] | None,
    schema: Mapping[str, Any],
    source: Source,
) -> None:
    """Raise DefinitionError for an action that cannot take batches, or for one grouped by an unknown parameter."""
    at = source.at(("batch",))
    if function is None:
        raise at.wrong(
            f"action {ref}: only a Python function takes batches",
            "Leave batch out, or call the program in a function.",
        )
    if executor is not None and executor not in BATCHING:
        raise at.wrong(
            f"action {ref}: the task executor {executor} takes no batches",
            "Write executor: async, thread or process, or leave batch out.",
        )
    properties = schema.get("properties", {})
    for path in batch.by if schema.get("additionalProperties") is False else ():
        if not is_label(path) and path.partition(".")[0] not in properties:
            label = meant_label(path)
            hint = f"Did you mean {label!r}?" if label else did_you_mean(path, properties)
            raise at.wrong(f"action {ref}: batch: by names no parameter: {path}", hint)
