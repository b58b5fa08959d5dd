"""Actions that are not Python functions: commands, URLs and images. Also the options of each built-in task executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.definitions.declaration import remember
from penstock.language.definitions.http_request import HttpRequest, checked_url
from penstock.language.definitions.qualified_name import Pack, pack_of, qualified
from penstock.language.schemas import Schema, parameters_schema, payload_schema
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Options, Problem, Wrong, problems, read_options, refusal
from penstock.language.terms.sources import Source, caller, of_frame

Texts = Annotated[list[Annotated[str, Field(strict=True)]], Field(min_length=1)]


class CommandOptions(Options):
    command: Texts
    """The program and its arguments. No shell is involved; parameters arrive as JSON on standard input."""
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    pass_env: list[str] = Field(default_factory=list)
    """Variables of the worker's environment that are passed to the program."""
    output: Literal["json", "text", "none"] = "json"


class HttpOptions(Options):
    url: str
    headers: dict[str, str] = Field(default_factory=dict)
    secret_env: str | None = None
    """The worker's environment variable with the secret that signs the request."""
    connect_timeout: PositiveDuration = 10
    timeout: PositiveDuration = 300
    """The seconds that the other side may stay silent."""

    request: HttpRequest | None = None
    """The request that the action makes. Without it the action POSTs its parameters in Penstock's own envelope."""
    secrets: dict[str, Annotated[str, Field(strict=True, min_length=1)]] = Field(default_factory=dict)
    """The stored secrets for templates of the request, by their names in the templates. They belong to the execution's
    tenant."""

    @field_validator("url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        return checked_url(url, templated="{{" in url)

    @model_validator(mode="after")
    def _fits_together(self) -> HttpOptions:
        if self.request is None and "{{" in self.url:
            raise Wrong(
                "has an expression in its url, but no request", "Add request: {method: GET}, for example."
            )
        if self.request is None and self.secrets:
            raise Wrong("has secrets, but no request", "Add request, whose templates read them.")
        if self.request is not None and (self.headers or self.secret_env):
            raise Wrong("has headers or secret_env beside a request", "Put the headers into the request.")
        return self


class KubernetesOptions(Options):
    image: Annotated[str, Field(strict=True, min_length=1)]
    command: Texts | None = None
    args: list[str] | None = None
    env: dict[str, str] = Field(default_factory=dict)
    namespace: str | None = None
    service_account: str | None = None
    resources: dict[str, dict[str, str]] = Field(default_factory=dict)
    node_selector: dict[str, str] = Field(default_factory=dict)
    image_pull_secrets: list[str] = Field(default_factory=list)
    output: Literal["json", "none"] = "json"
    start_timeout: PositiveDuration = 300


class ProcessOptions(Options):
    memory_limit: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The memory limit in bytes."""


Amounts = dict[str, Annotated[float, Field(ge=0, allow_inf_nan=False)]]


class DaskOptions(Options):
    resources: Amounts = Field(default_factory=dict)
    """Resources that a Dask worker must have free, as declared at its start: `dask worker --resources GPU=2`."""


class RayOptions(Options):
    num_cpus: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    num_gpus: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0
    memory: Annotated[int, Field(strict=True, ge=1)] | None = None
    """The bytes that Ray reserves for the action."""
    resources: Amounts = Field(default_factory=dict)
    """Custom resources that a node must have free."""


class NoOptions(Options):
    """The options of an executor that takes none."""


OPTIONS: dict[str, type[Options]] = {
    "async": NoOptions,
    "thread": NoOptions,
    "process": ProcessOptions,
    "command": CommandOptions,
    "http": HttpOptions,
    "kubernetes": KubernetesOptions,
    "dask": DaskOptions,
    "ray": RayOptions,
    "remote": NoOptions,
}
"""The options of each built-in task executor. Other executors check their options when they run."""
ENTRY = {"command": "command", "http": "url", "kubernetes": "image"}
"""The option that says what to run, for each executor that runs something other than a Python function."""


def checked_options(executor: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of an executor as they are stored. Raises ValidationError if an option is not valid."""
    kind = OPTIONS.get(executor)
    return dict(options) if kind is None else kind.model_validate(dict(options)).written()


def program_action(
    ref: str,
    executor: str,
    values: Mapping[str, Any],
    source: Source,
    *,
    pack: str | None = None,
    folder: Path | None = None,
) -> Action[..., Any]:
    """Return an action of a command, a URL, an image, or an entry for a foreign executor. `values` holds the options of
    the action, `parameters`, `result` and `description`. Raises DefinitionError if one of these is not valid."""
    values = dict(values)
    whole = qualified(ref, pack)
    label = f"action {whole}"
    schemas: dict[str, Any] = {}
    for name, make in (("parameters", parameters_schema), ("result", payload_schema)):
        schemas[name] = _schema(make, values.pop(name, None), name, label, source)
    description = "" if values.get("description") is None else values["description"]
    values.pop("description", None)
    if not isinstance(description, str):
        raise refusal(label, [Problem(("description",), "should be text", "Put it in quotes.")], source)

    options = values.pop("options", {})
    if not isinstance(options, Mapping):
        raise refusal(
            label,
            [Problem(("options",), "should be a mapping", "Write options={'env': {'LANG': 'C'}}.")],
            source,
        )
    entry = ENTRY.get(executor)
    if entry in values:
        options = {entry: values.pop(entry), **options}
    try:
        values["options"] = checked_options(executor, options)
    except ValidationError as error:
        faults = [
            Problem(p.at if p.at[:1] == (entry,) else ("options", *p.at), p.message, p.hint)
            for p in problems(error)
        ]
        raise refusal(label, faults, source) from None
    choices = read_options(ActionOptions, {**values, "executor": executor}, source, label)
    schema = Schema(schemas["parameters"])

    def bind(params: Mapping[str, Any]) -> dict[str, Any]:
        schema.validate(params)
        return dict(params)

    return Action(
        whole,
        choices=choices,
        parameters_schema=schemas["parameters"],
        result_schema=schemas["result"] or None,
        bind=bind,
        source=source,
        description=description.strip(),
        folder=folder,
    )


def _schema(make: Callable[[Any], Any], declared: Any, name: str, label: str, source: Source) -> Any:
    try:
        return make(declared)
    except Wrong as error:
        raise refusal(label, [Problem((name,), str(error), error.hint)], source) from None


def command_action(
    ref: str, command: Sequence[str], *, pack: str | Pack | None = None, **options: Any
) -> Action[..., Any]:
    """Return an action that runs a program. It reads the parameters as JSON from standard input, and writes the result
    as JSON to standard output.

    `parameters` and `result` are types, JSON Schemas or the short form. Other options are those of `@action`. `options`
    holds those of the executor (`env`, `output`, ...). Raises DefinitionError if one of these is not valid.
    """
    return _declared(
        ref, "command", {"command": list(command) if isinstance(command, tuple) else command, **options}, pack
    )


def http_action(ref: str, url: str, *, pack: str | Pack | None = None, **options: Any) -> Action[..., Any]:
    """Return an action that POSTs its parameters as JSON to a URL. The response is its result. With
    `options={"request": {...}}` it makes that request instead. Options as for `command_action`. Raises DefinitionError
    if one of these is not valid."""
    return _declared(ref, "http", {"url": url, **options}, pack)


def kubernetes_action(
    ref: str, image: str, *, pack: str | Pack | None = None, **options: Any
) -> Action[..., Any]:
    """Return an action that runs an image as a Kubernetes Job. Options as for `command_action`. Raises DefinitionError
    if one of these is not valid."""
    return _declared(ref, "kubernetes", {"image": image, **options}, pack)


def _declared(ref: str, executor: str, values: dict[str, Any], pack: str | Pack | None) -> Action[..., Any]:
    frame = caller()
    owner = pack or pack_of(frame.f_globals)
    name = owner.name if isinstance(owner, Pack) else owner
    declared = program_action(ref, executor, values, of_frame(frame), pack=name)
    remember(declared, frame)
    return declared
