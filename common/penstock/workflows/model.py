"""What a workflow is: a document of plain JSON, the same whether it was written in Python or in YAML.

The document is content-addressed: `Workflow.digest` is the SHA-256 of its canonical JSON, without what has
its default value, so that a new option does not change the address of an old workflow. A run keeps the
version that it started with. `FORMAT` is the version of the document's own shape.

Semantics: docs/workflows.md.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

from penstock.workflows import rules
from penstock.workflows.durations import seconds

FORMAT: Literal[1] = 1
MAX_TASKS = 20_000
NOOP, FAIL = "noop", "fail"
"""Actions that the executor does by itself. `noop` gives its input back as its result; `fail` fails with its
input's `message`."""

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
"""A word, because expressions say `tasks.<name>` and `vars.<name>`."""
Ref = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+$", max_length=200)]
"""`pack.name`"""
Seconds = Annotated[float, BeforeValidator(seconds), Field(gt=0, le=10 * 366 * 86_400)]
"""A number of seconds, or a text such as `90s`, `1h30m`."""


def _template(value: Any) -> Any:
    if isinstance(value, str) and "{{" not in value:
        raise ValueError("it takes an expression in {{ }} here")
    return value


Template = Annotated[str, AfterValidator(_template)]
"""A text that is one expression, as `{{ parameters.files }}`."""


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Transition(Part):
    """A way on from a task that has ended. Without `when` it is taken if the task succeeded; `true` is
    always."""

    when: str | bool = "succeeded()"
    publish: dict[Name, Any] | Template = Field(default_factory=dict)
    do: tuple[Name, ...] = ()

    @model_validator(mode="after")
    def _leads_somewhere(self) -> Transition:
        if not self.do and not self.publish:
            raise ValueError("a transition needs `do` or `publish`")
        if len(set(self.do)) < len(self.do):
            raise ValueError("it names a task twice in `do`")
        return self


class WaitForEvent(Part):
    """Waits for an event of a trigger; its result is the event. `filter` is a condition over `event`."""

    trigger: Ref
    filter: str | None = None
    timeout: Seconds | None = None


class Inquiry(Part):
    """Asks a human; the result is the answer. Texts and `default` may have expressions.

    `schema` is a JSON Schema of the answer. After `timeout` the answer is `default`; without one the task
    ends as `timeout`."""

    prompt: str
    answer: dict[str, Any] = Field(default_factory=dict, alias="schema")
    assignee: str | None = None
    timeout: Seconds | None = None
    default: Any = None


class ItemFailures(Part):
    """What becomes of a fan-out in which items fail.

    Up to `tolerate` (a number, or a text such as `10%`) the task completes all the same. Beyond, it fails:
    after all its items (`finish`), after those that have begun (`stop`), or these are cancelled too
    (`cancel`)."""

    tolerate: (
        Annotated[int, Field(ge=0)] | Annotated[str, StringConstraints(pattern=r"^\d{1,2}%$|^100%$")]
    ) = 0
    then: Literal["finish", "stop", "cancel"] = "finish"


class Step(Part):
    """What a task does, without its place in the graph: that is all there is to the task of `on_exit`."""

    action: Ref | Literal["noop", "fail"] | None = None
    workflow: Ref | None = None
    wait_for_event: WaitForEvent | None = None
    inquiry: Inquiry | None = None
    input: dict[str, Any] | Template = Field(default_factory=dict)
    with_items: list[Any] | Template | None = None
    concurrency: Annotated[int, Field(ge=1)] | Template | None = None
    batch_size: Annotated[int, Field(ge=1)] | None = None
    item_failures: ItemFailures = ItemFailures()
    publish: dict[Name, Any] | Template = Field(default_factory=dict)
    delay: Seconds | Template | None = None
    route: str | None = None
    allow_failure: bool = False

    @property
    def kind(self) -> Literal["action", "workflow", "event", "inquiry", "noop", "fail"]:
        if self.action in (NOOP, FAIL):
            return self.action  # type: ignore[return-value]
        if self.workflow:
            return "workflow"
        return "event" if self.wait_for_event else "inquiry" if self.inquiry else "action"

    @model_validator(mode="after")
    def _one_thing_to_do(self) -> Step:
        ways = [way for way in ("action", "workflow", "wait_for_event", "inquiry") if getattr(self, way)]
        if len(ways) != 1:
            said = f"it has {' and '.join(ways)}" if ways else "it has none of them"
            raise ValueError(
                f"a task does one of action, workflow, wait_for_event, inquiry; {said}"
                " (for a task that only joins or publishes write `action: noop`)"
            )
        _refuse(self, self.kind in ("event", "inquiry"), "input", "what waits takes no input")
        _refuse(
            self,
            self.kind in ("event", "inquiry"),
            "route",
            "what waits is on no route",
        )
        _refuse(
            self,
            self.kind in (NOOP, FAIL),
            "with_items route delay",
            f"`{self.action}` is done at once by the executor itself",
        )
        _refuse(
            self,
            self.with_items is None,
            "concurrency batch_size item_failures",
            "it goes with with_items",
        )
        return self


def _refuse(part: Part, condition: bool, fields: str, why: str) -> None:
    for field in fields.split():
        default = type(part).model_fields[field].get_default(call_default_factory=True)
        if condition and getattr(part, field) != default:
            raise ValueError(f"`{field}` cannot be used here: {why}")


class Task(Step):
    """A step in its place. It comes after its `needs` and after the tasks that name it in `next`; `when` and
    `join` say on what terms."""

    name: Name
    needs: tuple[Name, ...] = ()
    when: Annotated[rules.Rule, AfterValidator(rules.checked)] | None = None
    join: Literal["all", "any"] | Annotated[int, Field(ge=1)] | None = None
    next: tuple[Transition, ...] = ()

    @model_validator(mode="after")
    def _terms(self) -> Task:
        if len(set(self.needs)) < len(self.needs):
            raise ValueError("it names a task twice in `needs`")
        return self


class Workflow(Part):
    """A graph of tasks. `parameters` is a JSON Schema; `vars` are variables to begin with; `output` is the
    result."""

    format: Literal[1] = FORMAT
    ref: Ref
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)
    vars: dict[Name, Any] = Field(default_factory=dict)
    tasks: tuple[Task, ...] = Field(max_length=MAX_TASKS)
    output: Any = None
    timeout: Seconds | None = None
    on_exit: Step | None = None

    def document(self) -> dict[str, Any]:
        """The workflow as plain JSON, without what has its default value."""
        document: dict[str, Any] = {"format": FORMAT}
        document |= self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return document

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON of the document: the same content has the same address."""
        return hashlib.sha256(orjson.dumps(self.document(), option=orjson.OPT_SORT_KEYS)).hexdigest()


def tolerated(failures: ItemFailures, total: int) -> int:
    """How many of `total` items may fail."""
    if isinstance(failures.tolerate, int):
        return failures.tolerate
    return total * int(failures.tolerate[:-1]) // 100
