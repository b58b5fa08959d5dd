"""The document of a workflow: plain JSON, equal whether the workflow was written in Python or in YAML.

The document is content-addressed. The document omits default values, so that a new option does not change the address
of an old workflow. A run keeps the version with which it started. `FORMAT` is the version of the document's own shape.

Semantics: docs/workflows.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Annotated, Any, ClassVar, Literal, Self
from uuid import UUID

import orjson
from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, model_validator

from penstock.errors import InvalidInput
from penstock.language.definitions.document import Document
from penstock.language.definitions.qualified_name import Ref
from penstock.language.expressions.template_checks import Title
from penstock.language.schemas import check_value, parameters_schema
from penstock.language.schemas.searchable import check_searchable
from penstock.language.terms.action_ref import connected
from penstock.language.terms.durations import PositiveDuration
from penstock.language.terms.options import Items, Options, Wrong
from penstock.language.terms.run_labels import RunLabels
from penstock.language.terms.sources import Source, caller, of_frame
from penstock.language.workflows.task import Limits, Name, Step, Task
from penstock.run.call_interceptor import CALL_INTERCEPTOR

FORMAT: Literal[1] = 1
MAX_TASKS = 20_000
MAX_BYTES = 8 * 1024 * 1024
"""The maximum size of a workflow, in bytes of JSON."""


def _at_exit(step: Step) -> Step:
    if step.publish:
        raise Wrong("has `publish`, and nothing comes after it", "Remove `publish`.")
    return step


def _whole(version: object) -> object:
    if isinstance(version, bool):  # true equals 1
        raise Wrong("is not a version of the format", f"Write {FORMAT}, or leave it out.")
    return version


class Workflow(Options):
    """A graph of tasks. `vars` are the initial variables, and `output` is the result.

    `timeout` bounds the whole run. `on_exit` runs when all other tasks have ended, whatever their outcome.
    """

    kind: ClassVar[str] = "workflow"
    thing: ClassVar[str] = "workflow"

    format: Annotated[Literal[1], BeforeValidator(_whole)] = FORMAT
    ref: Ref
    description: str = ""
    parameters: Annotated[dict[str, Any], BeforeValidator(parameters_schema)] = Field(default_factory=dict)
    """The parameters, as a JSON Schema or its short form. Empty: any parameters are accepted."""
    vars: dict[Name, Any] = Field(default_factory=dict)
    tasks: Items[Task] = Field(max_length=MAX_TASKS)
    output: Any = None
    timeout: PositiveDuration | None = None
    warn_after: PositiveDuration | None = None
    """The time from its start after which a run that has not ended is late: rules of `penstock.execution.late` are notified."""
    fail_fast: bool = False
    """True: after a failure that no task handles, no further task starts. The run fails once all running tasks have ended."""
    limits: Limits = ()
    title: Title = None
    """The title of its executions in lists, such as "order {{ parameters.order }}". Secrets are masked."""
    run_labels: RunLabels = Field(default_factory=dict)
    """The labels of its executions and of their tasks, by which lists find them."""
    searchable: Items[str] = ()
    """The names of parameters that become labels of an execution. A text of more than 200 characters gets no label, nor does
    a parameter of an encrypted tenant."""
    on_exit: Annotated[Step, AfterValidator(_at_exit)] | None = None

    _source: Source = PrivateAttr(default=Source("?", 0))
    _schedules: list[Any] = PrivateAttr(default_factory=list)

    @model_validator(mode="after")
    def _searchable_parameters(self) -> Self:
        try:
            check_searchable(self.searchable, self.parameters)
        except Wrong as error:
            raise Wrong(f"searchable {error}", error.hint) from None
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Add a task that runs this workflow to the workflow function that is being read."""
        record = CALL_INTERCEPTOR.get()
        if record is None:
            raise of_frame(caller()).wrong(
                f"workflow {self.ref} is not a function", f'Start it: client.start("{self.ref}", ...).'
            )
        return record(self, args, kwargs)

    async def start(self, **parameters: Any) -> UUID:
        """Start the workflow through the connected client (`async with Client.connect():`). Return the execution's id.
        Raises OutsideRun if no client is connected, and the errors of `Client.start`."""
        return await connected().start(self.ref, parameters)

    async def run(self, **parameters: Any) -> Any:
        """Start the workflow, and wait for its result. Raises OutsideRun if no client is connected, and the errors of
        `Client.run`."""
        return await connected().run(self.ref, parameters)

    @property
    def source(self) -> Source:
        """Return the place where the workflow was written."""
        return self._source

    @property
    def schedules(self) -> list[Any]:
        """Return the schedules that `@schedule` declared for this workflow."""
        return self._schedules

    def written_at(self, source: Source) -> Workflow:
        self._source = source
        return self

    def body(self) -> dict[str, Any]:
        """Return the workflow as plain JSON, without default values."""
        return {"format": FORMAT, **self.written()}

    def document(self) -> Document:
        """Return the document to store. Raises DefinitionError if it is too large, or contains something that is not
        JSON."""
        try:
            whole = {"kind": self.kind, "ref": self.ref, "body": self.body()}
            encoded = check_value(whole, MAX_BYTES, what=f"workflow {self.ref}")
        except InvalidInput as error:
            raise self._source.wrong(error.message, error.hint) from None
        return Document(self.kind, self.ref, orjson.loads(encoded)["body"], sha256(encoded).hexdigest())

    @property
    def digest(self) -> str:
        """Return the address of the workflow's content."""
        return self.document().digest

    def parts(self) -> Iterator[Any]:
        """Yield the workflow, its schedules, its limits and those of its tasks."""
        yield self
        yield from self._schedules
        for limit in self.limits:
            yield limit.of_action(self.ref, self._source)
        for task in self.tasks:
            for limit in task.limits:
                yield limit.of_action(f"{self.ref}.{task.name}", self._source)
        for limit in self.on_exit.limits if self.on_exit is not None else ():
            yield limit.of_action(f"{self.ref}.on_exit", self._source)
