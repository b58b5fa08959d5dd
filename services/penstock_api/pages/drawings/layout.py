"""The layout of a workflow's graph: boxes and arrows from left to right, with a column for each distance from the
beginning."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

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

LANE = 8
"""The height of the lane in which a long arrow passes the boxes of a column."""
MAX_LANES = 300
"""The number of lanes above which long arrows are drawn behind the boxes, as straight as they are."""

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
    lanes = _lanes(tasks, columns)
    _sort(tasks, columns, lanes)
    boxes, places = _placed(tasks, columns, {source for source, _, _ in labels})
    label_of = {(source, target): label for source, target, label in labels}
    arrows = [
        _arrow(
            boxes[source],
            boxes[index],
            label_of.get((tasks[source][0], tasks[index][0]), ""),
            [places[lane] for lane in lanes.get((source, index), ())],
        )
        for index, (_, _, sources) in enumerate(tasks)
        for source in sources
    ]
    lowest_lane = max((y for _, y in places.values()), default=0)
    return _framed(boxes, arrows, lowest_lane)


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


def _lanes(tasks: Sequence[Task], columns: list[list[int]]) -> dict[tuple[int, int], list[int]]:
    """Add a lane to each column that a long arrow passes, so that no box is on top of the arrow. Return the lanes of these
    arrows by source and target. The long arrows of a source share its lanes. A lane has a number after those of the tasks."""
    column_of = {index: number for number, column in enumerate(columns) for index in column}
    ends = [(source, index) for index, (_, _, sources) in enumerate(tasks) for source in sources]
    passed = {(s, number) for s, t in ends for number in range(column_of[s] + 1, column_of[t])}
    if len(passed) > MAX_LANES:
        return {}
    numbers = {place: number for number, place in enumerate(sorted(passed), len(tasks))}
    for (_, column), number in numbers.items():
        columns[column].append(number)
    ways = {(s, t): [numbers[s, n] for n in range(column_of[s] + 1, column_of[t])] for s, t in ends}
    return {ends: way for ends, way in ways.items() if way}


def _sort(
    tasks: Sequence[Task], columns: list[list[int]], lanes: Mapping[tuple[int, int], Sequence[int]]
) -> None:
    """Sort each column so that tasks and lanes are near their neighbours in other columns, which leaves fewer crossing
    arrows."""
    sources: dict[int, set[int]] = {}
    targets: dict[int, set[int]] = {}
    for index, (_, _, before) in enumerate(tasks):
        for source in before:
            for first, second in pairwise((source, *lanes.get((source, index), ()), index)):
                sources.setdefault(second, set()).add(first)
                targets.setdefault(first, set()).add(second)
    place = {index: float(n) for column in columns for n, index in enumerate(column)}

    def near(index: int, neighbours: Collection[int]) -> float:
        return sum(place[other] for other in neighbours) / len(neighbours) if neighbours else place[index]

    for sweep in range(SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            column.sort(key=lambda i: near(i, (sources if forward else targets).get(i, ())))
            place.update({index: float(n) for n, index in enumerate(column)})


def _placed(
    tasks: Sequence[Task], columns: Sequence[Sequence[int]], wordy: Collection[str]
) -> tuple[dict[int, Box], dict[int, tuple[int, int]]]:
    """Return the box of each task, and the place of each lane. `wordy` are the tasks with labelled arrows, which need more
    room."""
    heights = [sum(_height(tasks, index) + DOWN for index in column) for column in columns]
    boxes: dict[int, Box] = {}
    places: dict[int, tuple[int, int]] = {}
    x = MARGIN
    for column, height in zip(columns, heights, strict=True):
        y = MARGIN + (max(heights) - height) // 2
        for index in column:
            if index < len(tasks):
                name, does, _ = tasks[index]
                boxes[index] = Box((name,), does, x, y)
            else:
                places[index] = (x, y + LANE // 2)
            y += _height(tasks, index) + DOWN
        is_wordy = any(index < len(tasks) and tasks[index][0] in wordy for index in column)
        x += WIDE + (WORDY if is_wordy else ACROSS)
    return boxes, places


def _height(tasks: Sequence[Task], index: int) -> int:
    return HIGH if index < len(tasks) else LANE


def _arrow(source: Box, target: Box, label: str = "", places: Sequence[tuple[int, int]] = ()) -> Arrow:
    """Return the arrow from a box to another one. The arrow passes the columns between the two boxes at `places`."""
    x1, y1 = source.x + WIDE, source.y + HIGH // 2
    end_x, end_y = target.x, target.y + HIGH // 2
    path, x, y = f"M{x1} {y1}", x1, y1
    for x2, y2 in places:
        path += f"{_curve(x, y, x2, y2, x2)}H{x2 + WIDE}"
        x, y = x2 + WIDE, y2
    path += _curve(x, y, end_x, end_y, end_x - 5)
    x2, y2 = (*places, (end_x, end_y))[0]
    return Arrow(path, source.names[0], target.names[0], label, (x1 + x2) // 2, (y1 + y2) // 2 - 6)


def _curve(x1: int, y1: int, x2: int, y2: int, tip: int) -> str:
    """Return the part of a path that crosses the gap between two columns, and ends at `tip`."""
    bend = (x2 - x1) // 2
    return f"C{x1 + bend} {y1} {x2 - bend} {y2} {tip} {y2}"


def _collapsed(tasks: Sequence[Task], columns: Sequence[Sequence[int]]) -> Layout:
    boxes = {}
    for at, column in enumerate(columns):
        names = tuple(tasks[index][0] for index in column)
        does = tasks[column[0]][1] if len(column) == 1 else f"{len(column):,} tasks"
        boxes[at] = Box(names, does, MARGIN + at * (WIDE + ACROSS), MARGIN)
    return _framed(boxes, [_arrow(boxes[at], boxes[at + 1]) for at in range(len(columns) - 1)])


def _framed(boxes: Mapping[int, Box], arrows: Sequence[Arrow], lowest_lane: int = 0) -> Layout:
    lowest = max((box.y + HIGH for box in boxes.values()), default=HIGH)
    return Layout(
        max((box.x for box in boxes.values()), default=0) + WIDE + MARGIN,
        max(lowest, lowest_lane) + MARGIN,
        list(boxes.values()),
        arrows,
    )
