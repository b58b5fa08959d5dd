"""The parameters of a re-run with other input, and the check that the re-run keeps nothing that has read a changed one."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from penstock.advance.open_workflows import read_plans
from penstock.advance.read_previous_run import read_kept_tasks
from penstock.engine.changed_parameters import ParameterRead, changed_paths, kept_reads
from penstock.engine.durable.records import COMPLETED, END, SLEEP
from penstock.errors import Conflict, InvalidInput
from penstock.language.expressions import SecretText
from penstock.language.rules.secret_references import checked_parameters, with_references
from penstock.language.schemas import Schema
from penstock.language.schemas.secrets import is_secret_at
from penstock.language.terms.options import did_you_mean, dotted, nearest
from penstock.language.terms.redaction import MASK
from penstock.language.workflows.templates import Path
from penstock.run.cut_texts import cut_end
from penstock.store.definitions import catalog
from penstock.store.durable import steps
from penstock.store.executions.executions import Execution
from penstock.store.session import sealed_marks
from penstock.store.session.database import Transaction

SHOWN = 3
"""The maximum number of kept tasks that an error names."""


class ChangedParameters:
    """The parameters of an execution with changes. `stored` is the JSON for the re-run, and `paths` lead to the values that
    differ, where a left-out parameter has its default."""

    def __init__(self, row: Execution, stored: str, paths: Sequence[Path]) -> None:
        self._row = row
        self.stored = stored
        self.paths = paths

    @classmethod
    async def read(
        cls, tx: Transaction, row: Execution, changed: Mapping[str, Any], unset: Sequence[str]
    ) -> ChangedParameters:
        """Set and remove parameters of an execution. References to stored secrets stay references.

        Raises InvalidInput if the result does not match the schema of the execution's version.
        """
        schema = (await catalog.parameter_schemas(tx, [row.definition_id]))[row.definition_id]
        properties = schema.document.get("properties") or {}
        defaults = {
            name: part["default"]
            for name, part in properties.items()
            if isinstance(part, Mapping) and "default" in part
        }
        stored_params = orjson.loads(row.params) if row.params else {}
        if sealed_marks.KEY in stored_params:
            raise Conflict(
                "its parameters are encrypted, and this process does not have the master key that decrypts them",
                hint="Ask a process with the master key that `penstock encryption list` names.",
            )
        old = with_references(stored_params)
        new = edited(old, defaults, properties, changed, unset)
        new = {name: _with_old_secrets(value, old.get(name), (name,), schema) for name, value in new.items()}
        try:
            stored = checked_parameters(schema, new, tx.settings.payload_cap).decode()
        except InvalidInput as error:
            error.hint = _meant(changed, {*properties, *old}) or error.hint or schema.takes()
            raise
        paths = changed_paths({**defaults, **old}, {**defaults, **new})
        return cls(row, stored, list(paths))

    async def check_kept_tasks(self, tx: Transaction, *, from_failed: bool, from_task: str | None) -> None:
        """Raise Conflict if a task that the re-run keeps has read a changed parameter. Raises NotFound if the tasks of the
        run are not stored any more."""
        if not self.paths:
            return
        row = self._row
        plan = (await read_plans(tx, {row.definition_id}))[row.definition_id]
        tasks, kept_tasks = await read_kept_tasks(
            tx, row.id, plan, from_failed=from_failed, from_task=from_task
        )
        if not (reads := kept_reads(plan, tasks, kept_tasks, self.paths)):
            return
        first = reads[0].task
        hint = f"Run it again as a whole: penstock rerun {row.id} --set ..."
        if from_task != first:
            tasks, kept_tasks = await read_kept_tasks(tx, row.id, plan, from_failed=False, from_task=first)
            if not kept_reads(plan, tasks, kept_tasks, self.paths):
                hint = f"Run it again from that task: penstock rerun {row.id} --from {first} --set ..."
        listed = "; ".join(map(_read_text, reads[:SHOWN]))
        suffix = f"; and {len(reads) - SHOWN} more" if len(reads) > SHOWN else ""
        raise Conflict(
            f"tasks with results that would be reused have read a changed parameter: {listed}{suffix}",
            hint=hint,
        )

    async def check_kept_steps(self, tx: Transaction) -> None:
        """Raise Conflict if the re-run of a durable function would keep a step. Its code may have read any parameter."""
        recorded = await steps.recorded(tx, self._row.id)
        names = [
            step.name
            for step in recorded
            if step.kind != END and (step.status == COMPLETED or step.kind == SLEEP)
        ]
        if self.paths and names:
            parameters = ", ".join(dotted(path) for path in self.paths)
            raise Conflict(
                f"the result of the step {names[0]} would be reused, but its function may have read {parameters}",
                hint=f"Run it again as a whole: penstock rerun {self._row.id} --set ...",
            )


def _meant(changed: Iterable[str], parameters: set[str]) -> str | None:
    """Return a hint for the first path that begins with no parameter, but with a name similar to one; None for none."""
    for name in changed:
        begin = _begin(name)
        if begin == name or name in parameters or begin in parameters:
            continue
        if near := nearest(begin, sorted(parameters)):
            return f"Did you mean {near + name.removeprefix(begin)!r}?"
    return None


def _with_old_secrets(value: Any, old: Any, place: Path, schema: Schema) -> Any:
    """Return a new value with the old one in each place where it is as outputs show it: `***` for a secret of the schema, and
    the text of a reference to a stored secret. So a form that was filled with shown values changes no secret."""
    if isinstance(old, SecretText) and value == old:
        return old
    if value == MASK and old is not None and is_secret_at(place, schema.document):
        return old
    if isinstance(value, Mapping):
        old_parts = old if isinstance(old, Mapping) else {}
        return {
            name: _with_old_secrets(inner, old_parts.get(name), (*place, name), schema)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        elements = old if isinstance(old, list) and len(old) == len(value) else [None] * len(value)
        return [_with_old_secrets(inner, elements[n], (*place, n), schema) for n, inner in enumerate(value)]
    return value


def edited(
    old: Mapping[str, Any],
    defaults: Mapping[str, Any],
    properties: Iterable[str],
    changed: Mapping[str, Any],
    unset: Sequence[str],
) -> dict[str, Any]:
    """Return the parameters `old` with other values, in the given order, and without those in `unset`.

    A name with dots or indexes is a path into a parameter, unless a parameter has exactly that name. Raises
    InvalidInput for a name that is set and unset, that is not a path, or that leads nowhere. Raises it for an element of a list
    that is unset, too."""
    new = copy.deepcopy(dict(old))
    parameters = {*properties, *old}
    for name, value in changed.items():
        if name in unset:
            raise InvalidInput(f"{name} is set and unset", hint="Do one of the two.")
        path = _path(name, parameters)
        if len(path) > 1 and path[0] not in new and path[0] in defaults:
            new[path[0]] = copy.deepcopy(defaults[path[0]])
        container, key = _place(new, path, name, create=True)
        container[key] = value
    for name in unset:
        container, key = _place(new, _path(name, parameters), name, create=False)
        if isinstance(container, list):
            raise InvalidInput(f"{name} is an element of a list", hint="Set the whole list.")
        if key not in container:
            raise _missing(name, container)
        del container[key]
    return new


_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d{1,9})\]", re.ASCII)
"""A step of a path: a name, or the number of an element."""


def _path(name: str, parameters: set[str]) -> list[str]:
    """Return the path of a name such as `customer.name`, `lines.1.sku` or `lines[1].sku`. Raises InvalidInput for a name that
    begins with a parameter and is not a path."""
    parameter = _begin(name)
    if name in parameters or parameter not in parameters:
        return [name]
    path, position = [parameter], len(parameter)
    while position < len(name):
        step = _STEP.match(name, position)
        if step is None:
            raise InvalidInput(
                f"{cut_end(name, 80)} is not a path in the parameter {parameter}",
                hint=f"Write a part of an object as {parameter}.name, and of a list as {parameter}[0].name, where 0 is the "
                f"first element. Or set {parameter} as a whole.",
            )
        path.append(step[1] or step[2])
        position = step.end()
    return path


def _begin(name: str) -> str:
    """Return the part of a name before its first dot or bracket."""
    return re.split(r"[.\[\]]", name, maxsplit=1)[0]


def _place(params: dict[str, Any], path: Sequence[str], name: str, *, create: bool) -> tuple[Any, str | int]:
    """Return the container of the value at `path`, and its key there. Missing objects on the way are created if `create`
    is true."""
    container: Any = params
    for number, step in enumerate(path[:-1], 1):
        key = _key(container, step, name, ".".join(path[: number - 1]))
        if isinstance(container, dict) and key not in container:
            if not create:
                raise _missing(name, container)
            container[key] = {}
        container = container[key]
    return container, _key(container, path[-1], name, ".".join(path[:-1]))


def _key(container: Any, step: str, name: str, place: str) -> str | int:
    if isinstance(container, dict):
        return step
    if not isinstance(container, list):
        raise InvalidInput(
            f"{name}: {place} is neither an object nor a list", hint=f"Set {place} as a whole."
        )
    if not _NUMBER.fullmatch(step) or int(step) >= len(container):
        raise InvalidInput(
            f"{name}: the list {place} has no element {step}",
            hint=f"It has {len(container)} elements, and the first is 0. Or set the whole list.",
        )
    return int(step)


_NUMBER = re.compile(r"\d{1,9}", re.ASCII)


def _missing(name: str, container: Mapping[str, Any]) -> InvalidInput:
    return InvalidInput(
        f"there is no parameter {name} to unset", hint=did_you_mean(name.rpartition(".")[2], container)
    )


def _read_text(parameter_read: ParameterRead) -> str:
    through = "" if parameter_read.variable is None else f", in the variable {parameter_read.variable}"
    return f"task {parameter_read.task} read {dotted(parameter_read.parameter)}{through}"
