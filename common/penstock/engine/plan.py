"""A compiled version of a workflow: its graph, and the templates of each task, which are compiled at their first use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.engine.facts import EVERYTHING, WORKFLOW, VariablesRequest
from penstock.errors import ExpressionError, InvalidInput, ResultNotStorable
from penstock.language.expressions import Condition, Render, compile_template, condition
from penstock.language.rules.secret_references import with_references
from penstock.language.schemas import PAYLOAD_CAP, check_value
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.graph import Graph, Node
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.templates import (
    NOTHING,
    Slot,
    Stage,
    Uses,
    context_rules,
    of_workflow,
    slots,
    uses,
)


@dataclass(frozen=True, slots=True)
class Reads:
    """The names that templates read, with tasks as indexes. `own` is true if a template reads the task's own result."""

    results: frozenset[int] = frozenset()
    tasks: frozenset[int] = frozenset()
    variables: frozenset[str] | None = frozenset()
    parameters: bool = False
    own: bool = False


NOTHING_READ = Reads()
RENDER_ERRORS = (ExpressionError, ResultNotStorable)
"""The errors of a template that cannot be rendered, or whose value cannot be stored."""
FIRST_STAGES: tuple[Stage, ...] = ("decide", "fan", "start")


@dataclass(frozen=True, slots=True)
class CompiledTransition:
    """A transition with compiled condition and values."""

    when: Condition
    always: bool
    publish: Render | None
    do: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CompiledTask:
    """The compiled templates of a task by field, and the names that they read at each stage. `rule_reads_values` is
    true if the task's trigger rule reads context values besides outcomes."""

    node: Node
    rule_reads_values: bool
    reads_to_start: bool
    render: Mapping[str, Render]
    transitions: tuple[CompiledTransition, ...]
    reads: Mapping[Stage, Reads]


class Plan:
    """A compiled workflow. `plan[index]` is a task with its templates. Build it once for each definition and keep it:
    it is immutable."""

    def __init__(self, workflow: Workflow, payload_cap: int = PAYLOAD_CAP) -> None:
        self.workflow = workflow
        self.payload_cap = payload_cap
        """The bound on each value that the workflow stores (its output, a task's published values and so on), in bytes
        of JSON."""
        self.graph = Graph(workflow)
        self._compiled: dict[int, CompiledTask] = {}
        self._variables: dict[tuple[int, frozenset[str] | None], VariablesRequest | None] = {}
        self.vars: Render = self._stored("vars", compile_template(workflow.vars))
        self.output: Render = self._stored("output", compile_template(workflow.output))
        self.vars_read, self.output_read = (self._reads(uses(slot.names)) for slot in of_workflow(workflow))

    def __getitem__(self, index: int) -> CompiledTask:
        compiled = self._compiled.get(index)
        if compiled is None:
            compiled = self._compiled[index] = self._compile(self.graph[index])
        return compiled

    def index(self, name: str) -> int:
        return self.graph.index[name]

    def parameters(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of a run, with the schema's defaults for missing ones."""
        properties = self.workflow.parameters.get("properties") or {}
        defaults = {
            name: schema["default"]
            for name, schema in properties.items()
            if isinstance(schema, Mapping) and "default" in schema
        }
        return {**defaults, **with_references(params)}

    @property
    def exit(self) -> int | None:
        return None if self.graph.exit is None else self.graph.exit.index

    def variables(self, reader: int, names: frozenset[str] | None) -> VariablesRequest | None:
        """Return the request for the variables `names` (None: all) as `reader` sees them, or None if the workflow has
        no such variables."""
        if names == frozenset():
            return None
        key = (reader, names)
        if key not in self._variables:
            self._variables[key] = self._request(reader, names)
        return self._variables[key]

    def _request(self, reader: int, names: frozenset[str] | None) -> VariablesRequest | None:
        after_all = reader in (EVERYTHING, self.exit)
        writers = self.graph.publishers.before(None if after_all else reader, names)
        initial = self.workflow.vars if names is None else names & self.workflow.vars.keys()
        if not writers.any and not initial:
            return None
        return VariablesRequest(names, writers.which, len(self.graph) if after_all else reader)

    def sees(self, reader: int, writer: int) -> bool:
        """Return whether `reader` sees the variables that `writer` publishes."""
        if writer == WORKFLOW or reader in (EVERYTHING, self.exit):
            return True
        return self.graph.publishers.sees(reader, writer)

    def _reads(self, used: Uses) -> Reads:
        if used == NOTHING:
            return NOTHING_READ
        return Reads(
            frozenset(self.graph.index[name] for name in used.results),
            frozenset(self.graph.index[name] for name in used.tasks),
            used.variables,
            used.parameters,
            used.own_result,
        )

    def _compile(self, node: Node) -> CompiledTask:
        reads: dict[Stage, Uses] = dict.fromkeys(("decide", "fan", "start", "settle"), NOTHING)
        reads["decide"] = context_rules(node.rule)
        render: dict[str, Render] = {}
        for slot in slots(node.step):
            reads[slot.stage] |= uses(slot.names)
            if slot.path[0] not in ("when", "next", "wait_for_event") and slot.template not in (None, {}):
                render[".".join(str(part) for part in slot.path)] = self._compile_slot(node.name, slot)
        transitions = tuple(
            CompiledTransition(
                condition(transition.when),
                transition.when is True,
                self._compile_slot(node.name, Slot(("next", number, "publish"), "settle", transition.publish))
                if transition.publish
                else None,
                tuple(self.graph.index[name] for name in transition.do),
            )
            for number, transition in enumerate(node.transitions)
        )
        rule_reads_values = any(
            isinstance(part, task_trigger_rules.ContextComparison)
            or (isinstance(part, str) and part not in task_trigger_rules.NAMED)
            for _, part in task_trigger_rules.walk(node.rule)
        )
        stage_reads = {stage: self._reads(used) for stage, used in reads.items()}
        reads_to_start = any(stage_reads[stage] is not NOTHING_READ for stage in FIRST_STAGES)
        return CompiledTask(node, rule_reads_values, reads_to_start, render, transitions, stage_reads)

    def _compile_slot(self, task: str, slot: Slot) -> Render:
        """Return the compiled template of a slot. Its errors name the task and the field."""
        path = ".".join(str(part) for part in slot.path)
        place, render = f"task `{task}`, {path}", compile_template(slot.template)
        return self._stored(place, render) if slot.path[-1] == "publish" else name_place(place, render)

    def _stored(self, place: str, render: Render) -> Render:
        """Return `render` with a check of its value. The function that is returned raises ResultNotStorable for a value
        that cannot be stored."""
        placed = name_place(place, render)

        def bounded(namespace: Mapping[str, Any]) -> Any:
            value = placed(namespace)
            self.check_storable(value, place)
            return value

        return bounded

    def check_storable(self, value: Any, place: str, cap: int | None = None) -> None:
        """Raise ResultNotStorable for a value of more than `cap` bytes (by default `payload_cap`), or one that is not JSON."""
        try:
            check_value(value, self.payload_cap if cap is None else cap, what=place)
        except InvalidInput as error:
            raise ResultNotStorable(error.message, hint=error.hint) from None


def name_place(place: str, render: Callable[[Mapping[str, Any]], Any]) -> Render:
    """Return `render` with `place` in front of the message of each ExpressionError."""

    def placed(namespace: Mapping[str, Any]) -> Any:
        try:
            return render(namespace)
        except ExpressionError as error:
            raise ExpressionError(f"{place}: {error.message}", hint=error.hint) from None

    return placed
