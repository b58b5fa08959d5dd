"""The compiled graph of a workflow, in which both notations, `needs` and `next`, are edges.

Tasks are numbered in the workflow's order: as declared, except that a task never stands before one that it waits for.
This order decides between equal alternatives, so a run never depends on which task was faster.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from penstock.errors import DefinitionError
from penstock.language.workflows import task_trigger_rules
from penstock.language.workflows.model import Workflow
from penstock.language.workflows.task import Step, Task

EXIT = "on_exit"
"""The name of the task that runs when all others have ended."""


@dataclass(frozen=True, slots=True)
class Node:
    """A task with its edges. `index` is its place in the workflow's order, and edges are such indexes.

    `routes` maps each target to the numbers of the transitions that lead to it. The task is decided as soon as
    `early_success` of its sources succeeded or `early_failure` failed (0: never early), or else when all sources
    ended. Then it runs if `rule` holds (None: always) and at least `early_success` sources succeeded.
    """

    index: int
    name: str
    step: Step
    sources: tuple[int, ...] = ()
    targets: tuple[int, ...] = ()
    routes: dict[int, tuple[int, ...]] | None = None
    rule: Any = None
    early_success: int = 0
    early_failure: int = 0
    named: frozenset[int] = frozenset()
    """The tasks whose outcomes the rule reads one by one."""
    handles_any_failure: bool = False
    handles_failures_of: frozenset[int] = frozenset()
    """The sources whose failure is handled when this task runs. With `handles_any_failure` it is every source."""

    @property
    def does(self) -> str:
        """Return the ref of the action or workflow that the task runs, or the kind of its wait."""
        waits = "wait_for_event" if self.step.wait_for_event else "inquiry"
        return self.step.action or self.step.workflow or waits

    def is_decidable(self, success: int, failed: int, skipped: int) -> bool:
        """Return True if it can be decided whether the task runs, after so many of its sources ended with each outcome."""
        if success + failed + skipped == len(self.sources):
            return True
        if self.early_failure and failed >= self.early_failure:
            return True
        return bool(self.early_success) and success >= self.early_success

    @property
    def transitions(self) -> tuple[Any, ...]:
        return self.step.next if isinstance(self.step, Task) else ()


class Graph:
    """The compiled graph of a workflow. Raises DefinitionError if the tasks form a circle. See
    `penstock.language.workflows.check`."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        declared = {task.name: position for position, task in enumerate(workflow.tasks)}
        sources = incoming(workflow.tasks, declared)
        order = topological(sources)
        place = {position: index for index, position in enumerate(order)}
        targets: list[list[int]] = [[] for _ in order]
        for index, position in enumerate(order):
            for source in sources[position]:
                targets[place[source]].append(index)
        self.index: dict[str, int] = {workflow.tasks[p].name: place[p] for p in order}
        self.nodes: list[Node] = [
            self._node(
                workflow.tasks[position], tuple(place[s] for s in sources[position]), tuple(targets[index])
            )
            for index, position in enumerate(order)
        ]
        self.exit: Node | None = None
        if workflow.on_exit is not None:
            self.exit = Node(len(self.nodes), EXIT, workflow.on_exit)
            self.index[EXIT] = self.exit.index

    def __len__(self) -> int:
        """Return the number of tasks, without the exit task."""
        return len(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.exit if self.exit is not None and index == self.exit.index else self.nodes[index]

    @property
    def entries(self) -> Iterable[Node]:
        """Return the tasks without sources."""
        return (node for node in self.nodes if not node.sources)

    def _node(self, task: Task, sources: tuple[int, ...], targets: tuple[int, ...]) -> Node:
        routes: dict[int, list[int]] = {}
        for number, transition in enumerate(task.next):
            for name in transition.do:
                routes.setdefault(self.index[name], []).append(number)
        rule, early_success, early_failure = task.when, _successes(task, bool(sources)), 0
        if rule == "one_success":
            early_success = 1
        elif rule == "one_failed":
            early_success, early_failure = 0, 1
        if rule is None or not task_trigger_rules.about_outcomes(rule):
            # A rule that says nothing about outcomes also requires that all needs succeeded.
            terms = [part for part in (None if early_success else "all_success", rule) if part is not None]
            rule = task_trigger_rules.All(all=tuple(terms)) if len(terms) > 1 else terms[0] if terms else None
        handles_any_failure, handled = task_trigger_rules.handled_failures(rule)
        return Node(
            index=self.index[task.name],
            name=task.name,
            step=task,
            sources=sources,
            targets=targets,
            routes={target: tuple(numbers) for target, numbers in routes.items()} or None,
            rule=rule,
            early_success=early_success,
            early_failure=early_failure,
            named=frozenset(self.index[name] for name in task_trigger_rules.tasks_named(rule)),
            handles_any_failure=handles_any_failure,
            handles_failures_of=frozenset(self.index[name] for name in handled),
        )

    @cached_property
    def publishers(self) -> Publishers:
        return Publishers(self)

    def comes_before(self, source: int, target: int) -> bool:
        """Return whether `target` always comes after `source`: whether a path of edges leads from one to the other."""
        visited, stack = {target}, [target]
        while stack:
            for predecessor in self.nodes[stack.pop()].sources:
                if predecessor == source:
                    return True
                if predecessor > source and predecessor not in visited:
                    visited.add(predecessor)
                    stack.append(predecessor)
        return False


def _successes(task: Task, has_sources: bool) -> int:
    """Return the number of successful sources after which a task runs, without waiting for the other sources. Return 0
    for a task that waits for all of them.

    `join` is that number, `any` (one) or `all`. Without it, a task with `needs` waits for all sources, and a task that
    only transitions lead to runs after the first one. `has_sources` is False for a task that the workflow begins with.
    """
    if isinstance(task.join, int):
        return task.join
    if task.join is None:
        return 0 if task.needs or not has_sources else 1
    return 1 if task.join == "any" else 0


class Publishers:
    """The tasks that may publish each variable. A task sees what the tasks before it publish."""

    def __init__(self, graph: Graph) -> None:
        self.all = [node.index for node in graph.nodes if published(node.step) != frozenset()]
        bit = self._bit = {index: 1 << n for n, index in enumerate(self.all)}
        self._of: dict[str, int] = {}
        self.anything = 0
        """A bit mask over `all`: the tasks that publish names which are only known at run time."""
        for index in self.all:
            names = published(graph.nodes[index].step)
            if names is None:
                self.anything |= bit[index]
            for name in names or ():
                self._of[name] = self._of.get(name, 0) | bit[index]
        self._before = [0] * len(graph)
        for node in graph.nodes if self.all else ():
            for source in node.sources:
                self._before[node.index] |= self._before[source] | bit.get(source, 0)

    def of(self, name: str, reader: int | None) -> bool:
        """Return whether a task before `reader` (None: any task) may publish `name`."""
        mask = self._of.get(name, 0) | self.anything
        return bool(mask if reader is None else mask & self._before[reader])

    def sees(self, reader: int, writer: int) -> bool:
        """Return whether `reader` sees what `writer` publishes, since it comes after it."""
        return bool(self._bit.get(writer, 0) & self._before[reader])

    def before(self, reader: int | None, names: Iterable[str] | None = None) -> Writers:
        """Return the tasks before `reader` (None: all) that may publish one of `names` (None: any)."""
        mask = (1 << len(self.all)) - 1
        if names is not None:
            mask = self.anything
            for name in names:
                mask |= self._of.get(name, 0)
        if reader is None:
            return Writers(bool(mask), None)
        visible = mask & self._before[reader]
        below = mask & ((1 << bisect_left(self.all, reader)) - 1)
        return Writers(bool(visible), None if visible == below else tuple(self._listed(visible)))

    def _listed(self, mask: int) -> Iterator[int]:
        while mask:
            low = mask & -mask
            yield self.all[low.bit_length() - 1]
            mask ^= low


class Writers(NamedTuple):
    """The tasks that may publish a variable: whether any exist, and their indexes. None: all that come before the
    reader."""

    any: bool
    which: tuple[int, ...] | None


def published(step: Step) -> frozenset[str] | None:
    """Return the variables that a step may publish, or None if they are only known at run time."""
    parts = [step.publish]
    if isinstance(step, Task):
        parts += [transition.publish for transition in step.next]
    names: set[str] = set()
    for part in parts:
        if isinstance(part, str):
            return None
        names.update(part)
    return frozenset(names)


def incoming(tasks: Iterable[Task], declared: dict[str, int]) -> list[list[int]]:
    """Return, for each task by its declared position, the positions of its sources. Unknown names are left out.
    `needs` come first, in their order."""
    tasks = list(tasks)
    sources: list[dict[int, None]] = [
        dict.fromkeys(declared[name] for name in task.needs if name in declared) for task in tasks
    ]
    for position, task in enumerate(tasks):
        for transition in task.next:
            for name in transition.do:
                if name in declared:
                    sources[declared[name]][position] = None
    return [list(positions) for positions in sources]


def topological(sources: list[list[int]]) -> list[int]:
    """Return the positions in an order in which each comes after its sources. Otherwise the smallest comes first.

    Raises DefinitionError, without names of tasks, if they form a circle.
    """
    waiting = [len(positions) for positions in sources]
    targets: list[list[int]] = [[] for _ in sources]
    for position, positions in enumerate(sources):
        for source in positions:
            targets[source].append(position)
    ready = [position for position, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        order.append(position := heapq.heappop(ready))
        for target in targets[position]:
            waiting[target] -= 1
            if not waiting[target]:
                heapq.heappush(ready, target)
    if len(order) < len(sources):
        raise DefinitionError("the tasks wait for each other in a circle")
    return order


def circle(sources: list[list[int]]) -> list[int]:
    """Return the positions of one circle, each waiting for the next, or an empty list."""
    state = [0] * len(sources)  # 0 not visited, 1 on the current path, 2 done
    for start in range(len(sources)):
        path: list[int] = []
        stack = [(start, iter(sources[start]))] if not state[start] else []
        while stack:
            position, pending = stack[-1]
            if state[position] == 0:
                state[position] = 1
                path.append(position)
            for source in pending:
                if state[source] == 1:
                    return path[path.index(source) :]
                if state[source] == 0:
                    stack.append((source, iter(sources[source])))
                    break
            else:
                state[position] = 2
                path.pop()
                stack.pop()
    return []
