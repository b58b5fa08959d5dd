"""The graph of a workflow as Graphviz DOT or as Mermaid, with tasks coloured by their status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from penstock.language.workflows.graph import Graph, Node

COLOURS = {
    "completed": "#b7e1cd",
    "failed": "#f4b6b6",
    "timeout": "#f4b6b6",
    "abandoned": "#f4b6b6",
    "cancelled": "#d9d9d9",
    "skipped": "#eeeeee",
    "running": "#fff2b3",
    "waiting": "#e6d5f2",
    "requested": "#dbe9ff",
    "queued": "#dbe9ff",
    "scheduled": "#dbe9ff",
    "due": "#dbe9ff",
    "paused": "#e6d5f2",
    "held": "#e6d5f2",
}
"""The colour of a task by its status. Tasks that have not begun stay white."""


class Edge(NamedTuple):
    source: str
    target: str
    label: str
    """The condition of the transition. Empty for `needs` and for a transition after success."""


def edges(graph: Graph) -> Iterator[Edge]:
    """Yield the edges of a graph in the workflow's order."""
    for node in graph.nodes:
        for target in node.targets:
            numbers = (node.routes or {}).get(target, ())
            conditions = [str(node.transitions[number].when) for number in numbers]
            label = " or ".join(text for text in conditions if text != "succeeded()")
            yield Edge(node.name, graph[target].name, {"True": "always"}.get(label, label))


def to_dot(graph: Graph, statuses: Mapping[str, str] | None = None) -> str:
    """Return the graph as Graphviz DOT, for `dot -Tsvg`. `statuses` are those of the tasks of a run, by name."""
    lines = ["digraph {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled", fillcolor=white];']
    for node in _all(graph):
        colour = COLOURS.get((statuses or {}).get(node.name, ""))
        fill = f', fillcolor="{colour}"' if colour else ""
        label = _quoted(_label(node, "\n"))
        lines.append(f"  {_quoted(node.name)} [label={label}{fill}];")
    for edge in edges(graph):
        label = f" [label={_quoted(edge.label)}]" if edge.label else ""
        lines.append(f"  {_quoted(edge.source)} -> {_quoted(edge.target)}{label};")
    return "\n".join([*lines, "}", ""])


def to_mermaid(graph: Graph, statuses: Mapping[str, str] | None = None) -> str:
    """Return the graph as a Mermaid flowchart, which Markdown pages and many editors show."""
    lines = ["flowchart LR"]
    used: dict[str, list[str]] = {}
    for node in _all(graph):
        lines.append(f'  {_id(node.name)}["{_escaped(_label(node, "<br>"))}"]')
        status = (statuses or {}).get(node.name, "")
        if status in COLOURS:
            used.setdefault(status, []).append(_id(node.name))
    for edge in edges(graph):
        arrow = f' -->|"{_escaped(edge.label)}"| ' if edge.label else " --> "
        lines.append(f"  {_id(edge.source)}{arrow}{_id(edge.target)}")
    for status, ids in used.items():
        lines.append(f"  classDef {status} fill:{COLOURS[status]},stroke:#666")
        lines.append(f"  class {','.join(ids)} {status}")
    return "\n".join([*lines, ""])


def _all(graph: Graph) -> Iterator[Node]:
    yield from graph.nodes
    if graph.exit is not None:
        yield graph.exit


def _label(node: Node, newline: str) -> str:
    step = node.step
    does = step.action or step.workflow or (step.wait_for_event and step.wait_for_event.trigger) or "inquiry"
    suffix = " x items" if step.with_items is not None else ""
    return (
        node.name
        if does.rpartition(".")[2] == node.name and not suffix
        else f"{node.name}{newline}{does}{suffix}"
    )


def _id(name: str) -> str:
    return f"t_{name}"  # `end` and other words of Mermaid may be names of tasks


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _escaped(text: str) -> str:
    return (
        text.replace("&", "&amp;")
        .replace('"', "&quot;")
        .replace("<br>", "\0")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("\0", "<br>")
    )
