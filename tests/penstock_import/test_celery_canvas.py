"""A canvas has the result here that Celery gives it: each one is run by Celery itself, and by a simulation of ours."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from celery import Celery, _state, chain, chord, group

from penstock.testing import Simulation
from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject

NAMES = ("one", "two", "three")
TASKS = "from celery import Celery, chain, chord, group\napp = Celery('depot')\n" + "".join(
    f"@app.task\ndef {name}(first=None, second=None): ...\n" for name in NAMES
)


def result_of_celery(canvas: str) -> Any:
    app = Celery("depot", backend="cache+memory://", set_as_current=False)
    app.conf.task_always_eager = True
    tasks: dict[str, Any] = {name: _task(app, name) for name in NAMES}
    previous = _state.get_current_app()
    app.set_current()
    try:
        signature = eval(canvas, {"chain": chain, "chord": chord, "group": group, **tasks})
        return signature.apply().get()
    finally:
        previous.set_current()


def _task(app: Celery, name: str) -> Any:
    def run(first: Any = None, second: Any = None) -> Any:
        return [name, first, second]

    return app.task(name=name)(run)


def result_here(folder: Path, canvas: str) -> Any:
    """Return the result of the workflow that the canvas becomes, or the text of the gap that names it."""
    folder.mkdir(parents=True)
    (folder / "depot.py").write_text(f"{TASKS}flow = {canvas}\n")
    source = CeleryProject(folder / "depot.py")
    project = source.mapped()
    keep_applicable(project, source.report)
    if not project.workflows:
        return next(gap.what for gap in source.report.gaps if gap.what.startswith("the canvas"))
    project.write(folder / "ours", "", source.report)
    simulation = Simulation(str(folder / "ours"))
    for name in NAMES:
        simulation.fake(
            f"depot.{name}", does=lambda first=None, second=None, name=name: [name, first, second]
        )
    (flow,) = project.workflows
    run = simulation.run(f"depot.{flow}")
    assert run.status == "completed", run.error
    return run.result


def _canvas(rng: random.Random, depth: int) -> str:
    kind = rng.choice(("task", "chain", "group", "chord", "or")) if depth else "task"
    if kind == "task":
        method = rng.choice(("s", "s", "si"))
        return f"{rng.choice(NAMES)}.{method}({rng.choice(('', '1', 'second=2'))})"
    parts = [_canvas(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    if kind == "or":
        return f"({' | '.join([*parts, _canvas(rng, depth - 1)])})"
    if kind == "chord":
        return f"chord([{', '.join(parts)}], {_canvas(rng, 0)})"
    return f"{kind}({', '.join(parts)})"


@pytest.mark.parametrize("seed", range(8))
def test_result_of_canvas_is_that_of_celery(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for number in range(25):
        canvas = _canvas(rng, 3)
        if canvas.startswith(NAMES):
            continue
        ours = result_here(tmp_path / str(number), canvas)
        if not isinstance(ours, str):
            assert ours == result_of_celery(canvas), canvas


@pytest.mark.parametrize(
    ("canvas", "expected"),
    [
        ("group(group(one.s(1), two.s(2)), three.s(3))", "a group within a group"),
        ("chord([group(one.s(1), two.s(2)), three.s(3)], one.s())", "a group within a group"),
        ("chord([one.s(1)], two.s())", None),
        ("(one.s(1) | group(two.s(), three.s()) | one.s())", None),
        ("chain(one.s(1), group(two.s()))", "a group of one task in a chain"),
        ("(one.s(1) | group([two.s()]) | three.s())", "a group of one task in a chain"),
        ("group()", "an empty group"),
    ],
)
def test_group_within_a_canvas(tmp_path: Path, canvas: str, expected: str | None) -> None:
    ours = result_here(tmp_path / "one", canvas)
    if expected is None:
        assert ours == result_of_celery(canvas)
    else:
        assert expected in ours


@pytest.mark.parametrize(
    ("parameters", "schema"),
    [
        ("x", {"required": True}),
        ("x=3", {"default": 3}),
        ("*, x='a'", {"default": "a"}),
        ("x=None, *rest", {"default": None}),
        ("x=load()", None),
        ("x=(1, 2)", None),
    ],
)
def test_parameter_of_canvas_has_the_default_of_its_function(
    tmp_path: Path, parameters: str, schema: dict[str, Any] | None
) -> None:
    text = f"{TASKS}def start({parameters}):\n    chain(one.s(x), two.s()).delay()\n"
    (tmp_path / "depot.py").write_text(text)
    source = CeleryProject(tmp_path / "depot.py")
    project = source.mapped()
    if schema is None:
        assert not project.workflows
        assert [gap for gap in source.report.gaps if gap.what.endswith("the function around it, is computed")]
    else:
        assert project.workflows["start_flow"]["parameters"] == {"x": schema}
