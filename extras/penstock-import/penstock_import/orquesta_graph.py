"""The order of tasks in an Orquesta workflow: the transitions that exclude each other, and the cases in which Penstock
behaves differently.

Two transitions exclude each other only if every way to the first contradicts every way to the second. Two ways
contradict each other by the outcome of a task, or by a comparison of the same value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from jinja2 import Environment, nodes
from jinja2.exceptions import TemplateSyntaxError

from penstock_import import yaql_parser as yaql

_JINJA = Environment()
_MAX_WAYS = 64
SUCCESS, FAILURE, ANY = "success", "failure", "any"


Atom = tuple[str, frozenset[str], bool]
"""A comparison: its subject, the values among which the subject's value is, and whether that holds."""
_TRUE = frozenset({""})


@dataclass(frozen=True, slots=True)
class Guard:
    """The demands of a transition: how its task ended, and comparisons that all hold."""

    outcome: str
    atoms: frozenset[Atom] = frozenset()

    def contradicts(self, other: Guard) -> bool:
        if {self.outcome, other.outcome} == {SUCCESS, FAILURE}:
            return True
        for subject, values, holds in self.atoms:
            for other_subject, other_values, other_holds in other.atoms:
                if subject == other_subject and (
                    (holds and not other_holds and values <= other_values)
                    or (other_holds and not holds and other_values <= values)
                    or (holds and other_holds and not values & other_values)
                ):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition from one task to another; `step` is its place in `next`."""

    source: str
    step: int
    target: str
    guard: Guard


Way = frozenset[tuple[str, Guard]]


@dataclass(slots=True)
class Graph:
    """The tasks of a workflow in the order in which they are written."""

    tasks: tuple[str, ...]
    edges: tuple[Edge, ...]
    joins: frozenset[str]
    ends_handled: frozenset[str] = frozenset()
    """The tasks with a failure that `noop` may handle, so that nothing comes after it."""
    _ways: dict[str, list[Way] | None] = field(default_factory=dict)
    _reached_tasks: dict[str, frozenset[str]] = field(default_factory=dict)

    def into(self, task: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.target == task]

    def out_of(self, task: str) -> list[Edge]:
        return [edge for edge in self.edges if edge.source == task]

    def after(self, task: str) -> frozenset[str]:
        """Return all tasks that can follow a task, directly or later."""
        if task not in self._reached_tasks:
            reached: set[str] = set()
            waiting = [task]
            while waiting:
                for edge in self.out_of(waiting.pop()):
                    if edge.target not in reached:
                        reached.add(edge.target)
                        waiting.append(edge.target)
            self._reached_tasks[task] = frozenset(reached)
        return self._reached_tasks[task]

    def is_exclusive(self, first: Edge, second: Edge) -> bool:
        """Return whether at most one of the two transitions is ever taken."""
        ways, other_ways = self._ways_through(first), self._ways_through(second)
        return ways is not None and other_ways is not None and _contradict(ways, other_ways)

    def are_concurrent(self, first: str, second: str) -> bool:
        """Return whether two tasks may run at the same time. True if that is unknown."""
        if second in self.after(first) or first in self.after(second):
            return False
        ways, other_ways = self.ways(first), self.ways(second)
        return ways is None or other_ways is None or not _contradict(ways, other_ways)

    def ways(self, task: str) -> list[Way] | None:
        """Return the ways to a task, each a set of transitions; None if there are too many."""
        if task not in self._ways:
            self._ways[task] = self._find_ways(task)
        return self._ways[task]

    def _find_ways(self, task: str) -> list[Way] | None:
        into = self.into(task)
        if not into:
            return [frozenset()]
        by_source: dict[str, list[Way]] = {}
        for edge in into:
            through = self._ways_through(edge)
            if through is None:
                return None
            by_source.setdefault(edge.source, []).extend(through)
        if task not in self.joins:
            hits = [way for ways in by_source.values() for way in ways]
            return hits if len(hits) <= _MAX_WAYS else None
        count = 1
        for ways in by_source.values():
            count *= len(ways)
        if count > _MAX_WAYS:
            return None
        return [frozenset().union(*parts) for parts in product(*by_source.values())]

    def _ways_through(self, edge: Edge) -> list[Way] | None:
        ways = self.ways(edge.source)
        return None if ways is None else [way | {(edge.source, edge.guard)} for way in ways]

    def is_certain(self, task: str) -> bool:
        """Return whether a task runs in every run in which no failure goes unhandled."""
        into = self.into(task)
        if not into:
            return True
        sources = {edge.source for edge in into}
        if task not in self.joins and len(sources) > 1:
            return False
        return all(self.is_certain(source) and self.always_leads_to(source, task) for source in sources)

    def always_leads_to(self, source: str, task: str) -> bool:
        """Return whether a task starts `task` whenever it ends with a handled outcome."""
        edges = self.out_of(source)
        plain = {edge.guard.outcome for edge in edges if edge.target == task and not edge.guard.atoms}
        if ANY in plain or {SUCCESS, FAILURE} <= plain:
            return True
        handled_elsewhere = any(edge.guard.outcome != SUCCESS for edge in edges if edge.target != task)
        return SUCCESS in plain and not handled_elsewhere and source not in self.ends_handled

    def may_fail_unhandled(self, task: str) -> bool:
        return not any(edge.guard.outcome != SUCCESS and not edge.guard.atoms for edge in self.out_of(task))


def _contradict(ways: Iterable[Way], other_ways: Iterable[Way]) -> bool:
    return all(_contradictory(way, other) for way, other in product(list(ways), list(other_ways)))


def _contradictory(way: Way, other: Way) -> bool:
    by_task: dict[str, list[Guard]] = {}
    for task, guard in other:
        by_task.setdefault(task, []).append(guard)
    return any(guard.contradicts(theirs) for task, guard in way for theirs in by_task.get(task, ()))


def cycle_edges(successors: Mapping[str, list[str]]) -> set[tuple[str, str]]:
    """Return the pairs of tasks with a transition that closes a circle, in the order in which they are written."""
    remaining: dict[str, set[str]] = {}
    closing: set[tuple[str, str]] = set()
    for source, targets in successors.items():
        for target in targets:
            reached, waiting = {target}, [target]
            while waiting:
                new = remaining.get(waiting.pop(), set()) - reached
                reached |= new
                waiting += new
            if source in reached:
                closing.add((source, target))
            else:
                remaining.setdefault(source, set()).add(target)
    return closing


def guard_of(when: object) -> Guard:
    """Return the demands of a `when`. A part that is not understood is left out, so that it excludes nothing."""
    if not isinstance(when, str):
        return Guard(ANY)
    text = when.strip()
    if text.startswith("<%") and text.endswith("%>"):
        try:
            return _guard(_yaql_atoms(yaql.parse(text[2:-2])))
        except yaql.YaqlSyntaxError:
            return Guard(ANY, frozenset({(text, _TRUE, True)}))
    if text.startswith("{{") and text.endswith("}}"):
        try:
            body = _JINJA.parse(text).body
        except TemplateSyntaxError:
            return Guard(ANY, frozenset({(text, _TRUE, True)}))
        if len(body) == 1 and isinstance(body[0], nodes.Output) and len(body[0].nodes) == 1:
            return _guard(_jinja_atoms(body[0].nodes[0]))
    return Guard(ANY, frozenset({(text, _TRUE, True)}))


def _guard(atoms: list[Atom]) -> Guard:
    outcome = ANY
    remainder = set()
    for subject, value, holds in atoms:
        if subject == "succeeded":
            outcome = SUCCESS if holds else FAILURE
        elif subject == "failed" and holds:
            outcome = FAILURE
        elif subject == "completed" and holds:
            pass
        else:
            remainder.add((subject, value, holds))
    return Guard(outcome, frozenset(remainder))


def _yaql_atoms(node: yaql.Expr) -> list[Atom]:
    match node:
        case yaql.Binary("and", left, right):
            return _yaql_atoms(left) + _yaql_atoms(right)
        case yaql.Binary("or", left, right):
            return _either(node, _yaql_atoms(left), _yaql_atoms(right))
        case yaql.Binary("=" | "!=", left, yaql.Const(value)):
            return [(repr(left), frozenset({_constant(value)}), node.operator == "=")]
        case yaql.Binary("<" | ">=", left, right):
            return [(repr((left, "<", right)), _TRUE, node.operator == "<")]
        case yaql.Binary(">" | "<=", left, right):
            return [(repr((left, ">", right)), _TRUE, node.operator == ">")]
        case yaql.Unary("not", operand):
            inner = _yaql_atoms(operand)
            if len(inner) == 1:
                subject, value, holds = inner[0]
                return [(subject, value, not holds)]
        case yaql.Call(name, ()) if name in ("succeeded", "failed", "completed"):
            return [(name, _TRUE, True)]
    return [(_truth(node), _TRUE, True)]


def _jinja_atoms(node: nodes.Node) -> list[Atom]:
    if isinstance(node, nodes.And):
        return _jinja_atoms(node.left) + _jinja_atoms(node.right)
    if isinstance(node, nodes.Or):
        return _either(node, _jinja_atoms(node.left), _jinja_atoms(node.right))
    if isinstance(node, nodes.Not):
        inner = _jinja_atoms(node.node)
        if len(inner) == 1:
            subject, value, holds = inner[0]
            return [(subject, value, not holds)]
    if isinstance(node, nodes.Compare) and len(node.ops) == 1 and node.ops[0].op in ("eq", "ne"):
        other = node.ops[0].expr
        if isinstance(other, nodes.Const):
            return [(repr(node.expr), frozenset({_constant(other.value)}), node.ops[0].op == "eq")]
    if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Name) and not node.args:
        return [(node.node.name, _TRUE, True)]
    return [(_truth(node), _TRUE, True)]


def _truth(node: object) -> str:
    """Return the subject of an atom that asks whether `node` is true. A comparison of `node` with a constant has another
    subject, since a value that is true may also be equal to that constant."""
    return f"the truth of {node!r}"


def _either(whole: object, first: list[Atom], second: list[Atom]) -> list[Atom]:
    """Return the atoms of an `or`: one with the values of both sides, where both compare the same subject."""
    if len(first) == len(second) == 1:
        (subject, values, holds), (other_subject, other_values, other_holds) = first[0], second[0]
        if subject == other_subject and holds and other_holds:
            return [(subject, values | other_values, True)]
    return [(_truth(whole), _TRUE, True)]


def _constant(value: object) -> str:
    """Return a text that is the same for equal constants only: `1`, `1.0` and `true` are equal."""
    if isinstance(value, int | float) and value == value and abs(value) != float("inf"):
        return repr(Fraction(value))
    return repr(value)
