"""The check that a re-run with other parameters keeps no task that has read one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.plan import Plan
from penstock.engine.rerun import TaskStates, skipped_again
from penstock.engine.state import KeptTask
from penstock.language.expressions import names_used
from penstock.language.workflows.graph import Node
from penstock.language.workflows.task_trigger_rules import ContextComparison, walk
from penstock.language.workflows.templates import Path, slots

ALL_STAGES = frozenset({"decide", "fan", "start", "settle"})


@dataclass(frozen=True, slots=True)
class ParameterRead:
    """A read of a changed parameter by a task that a re-run keeps. `parameter` is the path of the changed value. `variable`
    is the variable of the workflow through which the task has read it, or None."""

    task: str
    parameter: Path
    variable: str | None


def changed_paths(old: Any, new: Any, prefix: Path = ()) -> Iterator[Path]:
    """Yield the paths at which two values differ. A list is compared as one value."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        if not _are_alike(old, new):
            yield prefix
        return
    for name in sorted(old.keys() | new.keys()):
        if name in old and name in new:
            yield from changed_paths(old[name], new[name], (*prefix, name))
        else:
            yield (*prefix, name)


def _are_alike(old: Any, new: Any) -> bool:
    """Return whether two values are the same JSON. Unlike `==`, this tells `1`, `1.0` and `True` apart."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_are_alike(old[name], new[name]) for name in old)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_are_alike, old, new))
    return type(old) is type(new) and bool(old == new)


def kept_reads(
    plan: Plan, tasks: TaskStates, kept_tasks: Mapping[int, KeptTask], changed: Sequence[Path]
) -> list[ParameterRead]:
    """Return the first read of a changed parameter by each kept task, in the workflow's order. `tasks` are the task states
    of the run before. A task that its rule skips again counts as kept.

    The parameters that a kept task reads are unchanged, and so are the results and variables of the tasks before it. So
    its input is the same as in a whole re-run.
    """
    variables = _changed_variables(plan, changed)
    again = skipped_again(plan, tasks, kept_tasks)
    reads: list[ParameterRead] = []
    for node in plan.graph.nodes:
        kept_task = kept_tasks.get(node.index)
        if kept_task is None and node.index not in again:
            continue
        for path in _paths(node, _stages(kept_task)):
            parameter_read = _read(node.name, path, changed, variables)
            if parameter_read is not None:
                reads.append(parameter_read)
                break
    return reads


def _stages(kept_task: KeptTask | None) -> frozenset[str]:
    """Return the stages of a kept task at which its templates matter."""
    if kept_task is None:
        return ALL_STAGES
    if kept_task.status is None:  # a fan-out with another item list drops its kept items by itself
        return frozenset({"start"})
    # The engine did not render the input of a task that an operator ended.
    return frozenset({"settle"}) if kept_task.by_hand else ALL_STAGES


def _paths(node: Node, stages: frozenset[str]) -> Iterator[Path]:
    """Yield the paths of names that the templates of a task read at these stages."""
    for slot in slots(node.step):
        if slot.stage in stages:
            yield from sorted(slot.names.paths, key=str)
    if "decide" in stages:
        for _, part in walk(node.rule):
            # `a.b` may be one name with a dot, or a path of two names.
            if isinstance(part, ContextComparison):
                yield ("context", part.context)
                yield ("context", *part.context.split("."))


def _changed_variables(plan: Plan, changed: Sequence[Path]) -> dict[str, Path]:
    """Return the workflow's initial variables that read a changed parameter, with the path of that parameter."""
    variables = {}
    for name, template in plan.workflow.vars.items():
        for root, *path in names_used(template).paths:
            overlap = _overlap(tuple(path), changed) if root == "parameters" else None
            if overlap is not None:
                variables[name] = overlap
    return variables


def _read(
    task: str, path: Path, changed: Sequence[Path], variables: Mapping[str, Path]
) -> ParameterRead | None:
    root, *below = path
    if root in ("parameters", "context") and (parameter := _overlap(tuple(below), changed)) is not None:
        return ParameterRead(task, parameter, None)
    if root in ("vars", "context"):
        for name, parameter in variables.items():
            if not below or below[0] == name:
                return ParameterRead(task, parameter, name)
    return None


def _overlap(path: Path, changed: Sequence[Path]) -> Path | None:
    """Return the first changed path that contains `path` or is contained in it."""
    for other in changed:
        length = min(len(path), len(other))
        if path[:length] == other[:length]:
            return other
    return None
