"""The route of a task in `task_routes`, compared with Celery's own router."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from celery.app.routes import Router, prepare

from penstock_import.celery import CeleryProject

_PARTS = (
    "depot",
    "tasks",
    "weigh",
    "weigh_all",
    "tell",
    "*",
    "w*",
    "*.tasks",
    "?",
    "[dt]*",
    "depot.*",
    "*tell",
)
_EXPRESSIONS = (r"depot\.", r"(.*\.)?tell$", "weigh", r"DEPOT", "", ".+_all")
_TASKS = ("depot.tasks.weigh", "depot.tell", "weigh_all", "tasks.tell.weigh", "tell")
TASKS = "from celery import Celery\napp = Celery('depot')\n" + "".join(
    f"@app.task(name={name!r})\ndef task_{number}(): ...\n" for number, name in enumerate(_TASKS)
)


class _AnyQueue(dict[str, str]):
    """Queues of which each name is one."""

    def __missing__(self, name: str) -> str:
        return name


def routed_by_celery(routes: Any) -> dict[str, str]:
    app = Celery("depot", set_as_current=False)
    app.conf.task_default_queue = "of nobody"
    router = Router(prepare(routes), _AnyQueue(), app=app)
    queues = {name: router.route({}, name).get("queue") for name in _TASKS}
    return {name: queue for name, queue in queues.items() if queue != "of nobody"}


def routed(tmp_path: Path, text: str) -> tuple[dict[str, str], list[str]]:
    (tmp_path / "tasks.py").write_text(TASKS + "import re\n" + text)
    source = CeleryProject(tmp_path / "tasks.py")
    actions = source.mapped().actions
    routes = {name: actions[f"task_{number}"].get("route") for number, name in enumerate(_TASKS)}
    return {name: queue for name, queue in routes.items() if queue is not None}, [
        gap.what for gap in source.report.gaps
    ]


def _key(rng: random.Random) -> tuple[str, Any]:
    if rng.random() < 0.25:
        text, flag = rng.choice(_EXPRESSIONS), rng.choice(("", ", re.I", ", flags=re.IGNORECASE"))
        return f"re.compile({text!r}{flag})", re.compile(text, re.I if flag else 0)
    name = rng.choice((".".join(rng.choices(_PARTS, k=rng.randint(1, 3))), *_TASKS))
    return repr(name), name


def _map(rng: random.Random, is_dict: bool) -> tuple[str, Any]:
    entries = []
    for _ in range(rng.randint(0, 5)):
        text, key = _key(rng)
        queue = f"q{rng.randint(0, 99)}"
        route = queue if rng.random() < 0.4 else {"queue": queue}
        entries.append((text, key, route))
    if is_dict:
        return f"{{{', '.join(f'{text}: {route!r}' for text, _, route in entries)}}}", {
            key: route for _, key, route in entries
        }
    return f"[{', '.join(f'({text}, {route!r})' for text, _, route in entries)}]", [
        (key, route) for _, key, route in entries
    ]


@pytest.mark.parametrize("seed", range(12))
def test_route_of_task_is_that_of_celery(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(15):
        form = rng.choice(("dict", "dicts", "pairs", "both", "name"))
        count = 1 if form == "dict" else rng.randint(1, 3)
        maps = [
            _map(rng, form in ("dict", "dicts", "name") or (form == "both" and place % 2 == 0))
            for place in range(count)
        ]
        lines = [f"app.conf.task_routes = {maps[0][0]}\n"]
        if form == "name":
            names = [f"ROUTES_{place}" for place in range(count)]
            lines = [f"{name} = {text}\n" for name, (text, _) in zip(names, maps, strict=True)]
            lines.append(f"app.conf.task_routes = ({', '.join(names)},)\n")
        elif form != "dict":
            lines = [f"app.conf.task_routes = [{', '.join(text for text, _ in maps)}]\n"]
        theirs: Any = maps[0][1] if form == "dict" else [value for _, value in maps]
        folder = tmp_path / str(number)
        folder.mkdir()
        ours, gaps = routed(folder, "".join(lines))
        assert not any("computed" in gap for gap in gaps), gaps
        assert ours == routed_by_celery(theirs), lines


@pytest.mark.parametrize(
    ("routes", "gap"),
    [
        ("[choose]", "task_routes is computed: [choose]"),
        ("({'tell': 'one'}, 'depot.routers.Router')", "task_routes is computed"),
        ("[{'tell': 'one'}, *more]", "task_routes is computed"),
        ("[{**more, 'tell': 'one'}]", "task_routes is computed"),
        ("[[(name, 'one')]]", "task_routes is computed"),
        ("[[(re.compile(name), 'one')]]", "task_routes is computed"),
        ("[('tell', 'one'), ('weigh_all', 'two')]", "task_routes is a list of pairs, which Celery refuses"),
    ],
)
def test_routes_that_only_running_tells_are_named(tmp_path: Path, routes: str, gap: str) -> None:
    ours, gaps = routed(tmp_path, f"app.conf.task_routes = {routes}\n")
    assert ours == {}
    assert any(text.startswith(gap) for text in gaps), gaps


@pytest.mark.parametrize(
    "change", ["ROUTES['tell'] = {'queue': 'two'}", "ROUTES.pop('tell')", "ROUTES.update({'tell': 'two'})"]
)
def test_map_of_routes_that_changes_later_is_named(tmp_path: Path, change: str) -> None:
    text = f"ROUTES = {{'tell': 'one'}}\n{change}\napp.conf.task_routes = [ROUTES]\n"
    ours, gaps = routed(tmp_path, text)
    assert ours == {}
    assert any(gap.startswith("task_routes is computed: [ROUTES]") for gap in gaps), gaps


def test_list_of_routes_beside_other_routes_is_named(tmp_path: Path) -> None:
    text = "app.conf.task_routes = [{'tell': 'one'}]\napp.conf.task_routes['tell'] = {'queue': 'two'}\n"
    _, gaps = routed(tmp_path, text)
    assert any(gap.startswith("task_routes is computed") for gap in gaps), gaps


def test_route_with_an_empty_queue_is_named(tmp_path: Path) -> None:
    ours, gaps = routed(tmp_path, "app.conf.task_routes = {'tell': ''}\n")
    assert ours == {}
    assert "the route of tell" in gaps


def test_delivery_mode_of_a_route_is_named(tmp_path: Path) -> None:
    routes = "{'tell': {'queue': 'one', 'delivery_mode': 'transient', 'priority': 3}}"
    ours, gaps = routed(tmp_path, f"app.conf.task_routes = {routes}\n")
    assert ours["tell"] == "one"
    own = [gap for gap in gaps if "the route of tell" in gap]
    assert own == ["priority of the route of tell", "delivery_mode of the route of tell"]
