"""The layout of a workflow's graph: boxes and arrows from left to right, with a column for each distance from the
beginning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from penstock.language.workflows.diagram import edges
from penstock.language.workflows.graph import Graph

LARGE = 300
"""The number of tasks above which each column is drawn as one box."""
WIDE, HIGH = 168, 44
ACROSS, DOWN = 56, 18
"""The gaps between columns, and between the boxes of a column."""
WORDY = 124
"""The gap between columns if arrows have labels."""
MARGIN = 8
SWEEPS = 4

Task = tuple[str, str, tuple[int, ...]]
"""A task: its name, its work, and the indexes of the tasks before it."""


@dataclass(frozen=True, slots=True)
class Box:
    """A drawn task. With several `names` it stands for a whole column."""

    names: tuple[str, ...]
    does: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Arrow:
    path: str
    source: str
    target: str
    label: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Layout:
    width: int
    height: int
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]

    @property
    def collapsed(self) -> bool:
        return any(len(box.names) > 1 for box in self.boxes)


def layout(graph: Graph) -> Layout:
    """Return the layout of a graph, cached by the graph's content."""
    nodes = [*graph.nodes, *([graph.exit] if graph.exit is not None else [])]
    tasks = tuple((node.name, node.does, node.sources) for node in nodes)
    labels = tuple((edge.source, edge.target, edge.label) for edge in edges(graph) if edge.label)
    return _layout(tasks, labels, graph.exit is not None)


@lru_cache(maxsize=256)
def _layout(tasks: tuple[Task, ...], labels: tuple[tuple[str, str, str], ...], has_exit: bool) -> Layout:
    columns = _columns(tasks, has_exit)
    if len(tasks) > LARGE:
        return _collapsed(tasks, columns)
    _sort(tasks, columns)
    boxes = _placed(tasks, columns, {source for source, _, _ in labels})
    label_of = {(source, target): label for source, target, label in labels}
    arrows = [
        _arrow(boxes[source], boxes[index], label_of.get((tasks[source][0], tasks[index][0]), ""))
        for index, (_, _, sources) in enumerate(tasks)
        for source in sources
    ]
    return _framed(boxes, arrows)


def _columns(tasks: Sequence[Task], has_exit: bool) -> list[list[int]]:
    """Return the tasks by the length of the longest path to them. The exit task is in the last column."""
    depth: list[int] = []
    for _, _, sources in tasks:
        depth.append(max((depth[source] + 1 for source in sources), default=0))
    if has_exit:
        depth[-1] = max(depth[:-1], default=-1) + 1
    columns: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for index, column in enumerate(depth):
        columns[column].append(index)
    return columns


def _sort(tasks: Sequence[Task], columns: list[list[int]]) -> None:
    """Sort each column so that tasks are near their neighbours in other columns, which leaves fewer crossing arrows."""
    targets: dict[int, list[int]] = {}
    for index, (_, _, sources) in enumerate(tasks):
        for source in sources:
            targets.setdefault(source, []).append(index)
    place = {index: float(n) for column in columns for n, index in enumerate(column)}

    def near(index: int, neighbours: Sequence[int]) -> float:
        return sum(place[other] for other in neighbours) / len(neighbours) if neighbours else place[index]

    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            column.sort(key=lambda i: near(i, tasks[i][2] if forward else targets.get(i, ())))
            place.update({index: float(n) for n, index in enumerate(column)})


def _placed(
    tasks: Sequence[Task], columns: Sequence[Sequence[int]], wordy: Collection[str]
) -> dict[int, Box]:
    """Return the box of each task. `wordy` are the tasks with labelled arrows, which need more room."""
    tallest = max((len(column) for column in columns), default=0)
    boxes, x = {}, MARGIN
    for column in columns:
        top = MARGIN + (tallest - len(column)) * (HIGH + DOWN) // 2
        for n, index in enumerate(column):
            name, does, _ = tasks[index]
            boxes[index] = Box((name,), does, x, top + n * (HIGH + DOWN))
        x += WIDE + (WORDY if any(tasks[index][0] in wordy for index in column) else ACROSS)
    return boxes


def _arrow(source: Box, target: Box, label: str = "") -> Arrow:
    x1, y1 = source.x + WIDE, source.y + HIGH // 2
    x2, y2 = target.x, target.y + HIGH // 2
    bend = (x2 - x1) // 2
    path = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2 - 5} {y2}"
    return Arrow(path, source.names[0], target.names[0], label, (x1 + x2) // 2, (y1 + y2) // 2 - 6)


def _collapsed(tasks: Sequence[Task], columns: Sequence[Sequence[int]]) -> Layout:
    boxes = {}
    for at, column in enumerate(columns):
        names = tuple(tasks[index][0] for index in column)
        does = tasks[column[0]][1] if len(column) == 1 else f"{len(column):,} tasks"
        boxes[at] = Box(names, does, MARGIN + at * (WIDE + ACROSS), MARGIN)
    return _framed(boxes, [_arrow(boxes[at], boxes[at + 1]) for at in range(len(columns) - 1)])


def _framed(boxes: Mapping[int, Box], arrows: Sequence[Arrow]) -> Layout:
    return Layout(
        max((box.x for box in boxes.values()), default=0) + WIDE + MARGIN,
        max((box.y for box in boxes.values()), default=0) + HIGH + MARGIN,
        list(boxes.values()),
        arrows,
    )
