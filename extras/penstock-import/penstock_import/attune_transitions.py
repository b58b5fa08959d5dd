"""The transitions of Attune's workflows: the condition of each on the end of its task, and the cases in which Penstock
behaves differently."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from penstock_import.orquesta_graph import ANY, FAILURE, SUCCESS, Edge, Graph, Guard, guard_of

Gap = tuple[str, str]
"""A gap: its subject, and the work by hand."""
_KINDS = {"failed": "failure", "timed_out": "timeout"}


def guard(when: Any) -> Guard:
    """Return the demands of a `when`. In Attune, `failed()` excludes a timeout, so the two conditions exclude each
    other."""
    if when is None:
        return Guard(ANY)
    text = str(when).strip()
    asked_for = guard_of(text if text.startswith("{{") else "{{ " + text + " }}")
    bare = text.removeprefix("{{").removesuffix("}}").strip().removesuffix("()")
    if bare in _KINDS:
        return Guard(FAILURE, frozenset({("how it failed", frozenset({_KINDS[bare]}), True)}))
    if any(subject == "timed_out" and holds for subject, _, holds in asked_for.atoms):
        return Guard(FAILURE, asked_for.atoms)
    return asked_for


@dataclass(slots=True)
class Order:
    """The transitions of a workflow, the variables that they publish, and the variables that its tasks read."""

    tasks: list[str]
    edges: list[Edge] = field(default_factory=list)
    writers: dict[str, list[tuple[str, Guard]]] = field(default_factory=dict)
    """The tasks that publish a variable, by variable."""
    readers: dict[str, set[str]] = field(default_factory=dict)
    """The variables that a task reads, by task."""
    joins: dict[str, Any] = field(default_factory=dict)

    def add(
        self, name: str, step: int, when: Any, targets: Iterable[str], published: Collection[str]
    ) -> None:
        """Note a transition."""
        own = guard(when)
        self.edges += [Edge(name, step, target, own) for target in dict.fromkeys(targets)]
        for variable in published:
            self.writers.setdefault(variable, []).append((name, own))

    def gaps(self, targets: Mapping[str, Collection[str]]) -> Iterator[Gap]:
        """Yield the differences to Attune's behaviour. `targets` are the targets of each task, without transitions that
        lead back."""
        edges = tuple(edge for edge in self.edges if edge.target in targets.get(edge.source, ()))
        graph = Graph(tuple(self.tasks), edges, frozenset(self.joins))
        for name in self.tasks:
            into = graph.into(name)
            sources = {edge.source for edge in into}
            if name in self.joins:
                if not all(
                    graph.is_certain(source) and graph.always_leads_to(source, name) for source in sources
                ):
                    yield (
                        f"{name} joins branches that may lead elsewhere: Attune counts each ended task, "
                        "wherever it leads",
                        "Penstock counts only tasks that lead to it: say with `when` what should happen.",
                    )
                elif any(edge.guard.outcome != SUCCESS for edge in into):
                    yield (
                        f"{name} also joins a branch that leads to it after a failure: Attune does not count failed tasks",
                        "In Attune the workflow stands still, in Penstock it goes on: say with `when` what should happen.",
                    )
            elif any(
                first.source != second.source and not graph.is_exclusive(first, second)
                for first, second in combinations(into, 2)
            ):
                yield (
                    f"{name} may be reached several times and has no join: Attune may run it again",
                    "In Penstock it runs once, after the first transition. Write `join`, or a task for each transition.",
                )
        yield from self._of_variables(graph)

    def _of_variables(self, graph: Graph) -> Iterator[Gap]:
        for variable, places in self.writers.items():
            writers = list(dict.fromkeys(name for name, _ in places))
            for first, second in combinations(writers, 2):
                if graph.are_concurrent(first, second):
                    yield (
                        f"{first} and {second} run side by side and publish {variable}: in Attune the later publish wins",
                        "In Penstock the later task in the workflow's order wins: publish under two names.",
                    )
            for reader, variables in self.readers.items():
                for writer in writers:
                    if variable in variables and writer != reader and graph.are_concurrent(writer, reader):
                        yield (
                            f"{reader} reads {variable}, which {writer} may publish at the same time",
                            "In Penstock a task sees only values that tasks before it published: let it come after that task.",
                        )


def outcomes(own: Guard) -> tuple[str, ...]:
    """Return the outcomes of a task after which a transition can be taken."""
    return (SUCCESS, FAILURE) if own.outcome == ANY else (own.outcome,)
