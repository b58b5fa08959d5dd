"""A canvas has the result here that Celery gives it: each one is run by Celery itself, and by a simulation of ours."""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from celery import Celery, _state, chain, chord, group

from penstock.testing import Simulation
from penstock_import.applied import keep_applicable
from penstock_import.celery import CeleryProject
from penstock_import.project import Project
from penstock_import.report import Gap, Report

NAMES = ("one", "two", "three")
TASKS = "from celery import Celery, chain, chord, group\napp = Celery('depot')\n" + "".join(
    f"@app.task\ndef {name}(first=None, second=None): ...\n" for name in NAMES
)


def result_of_celery(canvas: str, values: Mapping[str, Any] | None = None) -> Any:
    app = Celery("depot", backend="cache+memory://", set_as_current=False)
    app.conf.task_always_eager = True
    tasks: dict[str, Any] = {name: _task(app, name) for name in NAMES}
    previous = _state.get_current_app()
    app.set_current()
    try:
        signature = eval(canvas, {"chain": chain, "chord": chord, "group": group, **tasks, **(values or {})})
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
        ("x=load()", {"required": True}),
        ("x=(1, 2)", {"required": True}),
    ],
)
def test_parameter_of_canvas_has_the_default_of_its_function(
    tmp_path: Path, parameters: str, schema: dict[str, Any]
) -> None:
    """A default that only running would tell is one of the values that a start must give."""
    project, starts = started(tmp_path, f"def start({parameters}):\n    chain(one.s(x), two.s()).delay()\n")
    assert project.workflows["start_flow"]["parameters"] == {"x": schema}
    assert len(starts) == ("load()" in parameters or "(1, 2)" in parameters)


def started(folder: Path, function: str) -> tuple[Project, list[Gap]]:
    """Return what is made of a function, and the gaps that name the values of its starts."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "depot.py").write_text(TASKS + function)
    source = CeleryProject(folder / "depot.py")
    project = source.mapped()
    keep_applicable(project, source.report)
    assert source.report.applied["canvases"] == source.report.mapped["canvases"]
    return project, [gap for gap in source.report.gaps if gap.what.startswith("the start of")]


def result_of_start(folder: Path, function: str, values: Mapping[str, Any]) -> Any:
    """Return the result of the workflow with the parameters that the gap names, evaluated with the function's values."""
    project, starts = started(folder, function)
    (flow,) = project.workflows
    own = [name for name in project.workflows[flow]["parameters"] if name in values]
    parameters = {name: values[name] for name in own}
    for gap in starts:
        text = re.search(r"client\.start\([^,]*, (.*)\)` there", gap.by_hand)
        assert text is not None, gap.by_hand
        parameters = eval(text[1], {**values})
    project.write(folder / "ours", "", Report())
    simulation = Simulation(str(folder / "ours"))
    for name in NAMES:
        simulation.fake(
            f"depot.{name}", does=lambda first=None, second=None, name=name: [name, first, second]
        )
    run = simulation.run(f"depot.{flow}", parameters)
    assert run.status == "completed", run.error
    return run.result


VALUES: dict[str, Any] = {
    "a": 1,
    "b": {"id": 5},
    "order": SimpleNamespace(id=7, crate=SimpleNamespace(id="c")),
    "xs": [1, 2, 3],
    "none": [],
    "pairs": [[1, "x"], [2, "y"]],
}


@pytest.mark.parametrize(
    "canvas",
    [
        "chain(one.s(a + 1), two.s(order.id))",
        "chain(one.s(order.crate.id, second=order.id), two.si(b['id']), three.s())",
        "group(one.s(order.id), two.s(order.id), one.s(a))",
        "chord([one.s(str(a)), two.s(max(xs))], three.s(second=len(xs)))",
        "(one.si(f'{a}-{order.id}') | two.s([a, order.id]))",
        "group(one.s(x) for x in xs)",
        "group([one.s(x) for x in xs])",
        "group(*[one.si(x) for x in xs])",
        "group(one.s(x, second=a) for x in xs)",
        "group(one.s(x, second='q') for x in xs if x > 1)",
        "group(one.s(x + a, x) for x in xs)",
        "group(one.s(p, q) for p, q in pairs)",
        "group(one.s(x, y) for x in xs for y in xs)",
        "group(one.s(x) for x in none)",
        "chord([one.s(x) for x in xs], two.s())",
        "chord((one.s(x) for x in xs), two.s(second=order.id))",
        "chord([one.s(x) for x in xs])(two.si(a))",
        "chord([one.s(xs[0])], two.s())",
        "chord(group(one.s(x) for x in xs), two.s())",
        "chord(group([one.s(a), two.s(a)]), two.s())",
        "chord(group(one.s(a + 1)), two.s())",
    ],
)
def test_computed_values_are_parameters_with_the_result_of_celery(tmp_path: Path, canvas: str) -> None:
    names = ", ".join(VALUES)
    computed = "".join(f"    {name} = load()\n" for name in VALUES)
    own = result_of_start(tmp_path / "own", f"def go({names}):\n    {canvas}.delay()\n", VALUES)
    local = result_of_start(tmp_path / "local", f"def go():\n{computed}    {canvas}.delay()\n", VALUES)
    expected = result_of_celery(canvas.replace("])(two.si(a))", "], two.si(a))"), VALUES)
    assert own == local == expected


def test_start_of_canvas_is_named_with_its_values(tmp_path: Path) -> None:
    function = (
        "def go(crate, size=2):\n    row = load(crate)\n    chain(one.s(row.id, size), two.s(row)).delay()\n"
    )
    project, (gap,) = started(tmp_path, function)
    assert project.workflows["go_flow"]["parameters"] == {
        "row": {"required": True},
        "row_id": {"required": True},
        "size": {"default": 2},
    }
    assert gap.line == TASKS.count("\n") + 3
    values = '{"row": row, "row_id": row.id, "size": size}'
    assert gap.what == f"the start of the workflow depot.go_flow by go, which computes {values}"
    assert f'client.start("depot.go_flow", {values})' in gap.by_hand
    assert "penstock run depot.go_flow row=... row_id=... size=..." in gap.by_hand


def test_parameter_that_its_function_changes_is_computed(tmp_path: Path) -> None:
    for number, change in enumerate(
        ("crate['a'] = 1", "crate.update(a=1)", "crate.size = 2", "del crate[0]")
    ):
        function = f"def go(crate):\n    {change}\n    chain(one.s(crate), two.s()).delay()\n"
        _, starts = started(tmp_path / str(number), function)
        assert len(starts) == 1, change


@pytest.mark.parametrize(
    "binding",
    [
        "from depot import x",
        "try:\n        load()\n    except ValueError as x:\n        pass",
        "match load():\n        case [*x]:\n            pass",
        "match load():\n        case {'a': 1, **x}:\n            pass",
        "match load():\n        case int() as x:\n            pass",
        "def x(): ...",
    ],
)
def test_parameter_that_another_statement_binds_is_computed(tmp_path: Path, binding: str) -> None:
    function = f"def go(x=1):\n    {binding}\n    chain(one.s(x), two.s()).delay()\n"
    project, starts = started(tmp_path, function)
    assert project.workflows["go_flow"]["parameters"] == {"x": {"required": True}}
    assert len(starts) == 1


def test_parameter_of_lambda_hides_that_of_its_function(tmp_path: Path) -> None:
    function = "def go(x=1):\n    run(lambda x: chain(one.s(x), two.s()).delay())\n"
    project, starts = started(tmp_path, function)
    assert project.workflows["go_flow"]["parameters"] == {"x": {"required": True}}
    assert len(starts) == 1


@pytest.mark.parametrize(
    "change",
    ["fill(x)", "same = x\n    same['a'] = 2", "y = x.pop('a')", "for y in x.values():\n        y.clear()"],
)
def test_default_that_other_code_may_change_is_computed(tmp_path: Path, change: str) -> None:
    function = f"def go(x={{'a': 1}}):\n    {change}\n    chain(one.s(x), two.s()).delay()\n"
    project, starts = started(tmp_path, function)
    assert project.workflows["go_flow"]["parameters"] == {"x": {"required": True}}
    assert len(starts) == 1


def test_comprehension_of_signatures_is_computed_at_its_line(tmp_path: Path) -> None:
    """The statements between the list and the start may change what the comprehension reads."""
    lines = ["def go(rows):", "    parts = [one.s(row.id) for row in rows.filter(done=False)]"]
    lines += ["    rows.update(done=True)", "    group(parts).delay()"]
    _, (gap,) = started(tmp_path, "\n".join(lines) + "\n")
    line = TASKS.count("\n") + 2
    first = f"parts = [row.id for row in rows.filter(done=False)] at line {line}"
    assert gap.what.endswith(f'computes {{"parts": parts}}, with {first}')
    assert (
        f'client.start("depot.go_flow", {{"parts": parts}})` there. First write {first}, where' in gap.by_hand
    )


@pytest.mark.parametrize("value", ["row.state", "load(row)", "row['state']"])
def test_signature_in_variable_is_computed_at_its_line(tmp_path: Path, value: str) -> None:
    function = (
        f"def go(row):\n    first = one.s({value})\n    row.state = 2\n    chain(first, two.s()).delay()\n"
    )
    _, (gap,) = started(tmp_path, function)
    line = TASKS.count("\n") + 2
    text = ast.unparse(ast.parse(value))
    assert gap.what.endswith(f", with {text} at line {line}")
    assert f"First compute {text} at line {line}, where the signature is made." in gap.by_hand


@pytest.mark.parametrize(
    "form", ["group(*parts)", "group(parts)", "chord(parts, three.s())", "chord(parts)(three.s())"]
)
def test_list_that_collects_signatures_is_a_parameter(tmp_path: Path, form: str) -> None:
    lines = ["def go(xs):", "    parts = []", "    for x in xs:", "        if x > 1:"]
    lines += [
        "            parts.append(one.s(x, x + 1))",
        "        else:",
        "            parts.append(one.s(x, 0))",
    ]
    lines += ["    if not parts:", "        return", f"    {form}.delay()"]
    project, (gap,) = started(tmp_path, "\n".join(lines) + "\n")
    (flow,) = project.workflows.values()
    assert flow["parameters"] == {"parts": {"type": "array", "required": True}}
    assert flow["tasks"]["one"] == {
        "action": "depot.one",
        "with_items": "{{ parameters.parts }}",
        "input": {"first": "{{ item.first }}", "second": "{{ item.second }}"},
    }
    line = TASKS.count("\n") + 5
    first, second = "parts.append({'first': x, 'second': x + 1})", "parts.append({'first': x, 'second': 0})"
    assert f"with {first} at line {line}, {second} at line {line + 2}" in gap.what
    assert f"First write {first} at line {line}, and {second}" in gap.by_hand


@pytest.mark.parametrize(
    "body",
    [
        "first = one.s(x)\n    first = two.s(x)\n    chain(first, two.s())()",
        "first = one.s(x)\n    first.set(queue='q')\n    chain(first, two.s())()",
        "first = one.s(x)\n    change(first)\n    chain(first, two.s())()",
        "first = one.s(x)\n    x = 3\n    chain(first, two.s())()",
        "first = load()\n    chain(first, two.s())()",
        "def make():\n        first = one.s(x)\n    chain(first, two.s())()",
        "chord(group([one.s(y) for y in x], app=app), two.s())()",
        "parts = [one.s(y) for y in x]\n    parts.append(one.s(4))\n    group(parts)()",
        "parts = [one.s(y) for y in x]\n    parts[0].set(queue='q')\n    group(parts)()",
    ],
)
def test_variable_with_another_signature_is_named(tmp_path: Path, body: str) -> None:
    (tmp_path / "depot.py").write_text(f"{TASKS}def go(x):\n    {body}\n")
    source = CeleryProject(tmp_path / "depot.py")
    assert not source.mapped().workflows
    assert any(gap.what.startswith("the canvas") for gap in source.report.gaps), source.report.gaps


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "parts = []\n    parts.append(one.s(x))\n    parts.append(two.s(x))\n    group(parts)()",
            "several tasks",
        ),
        (
            "parts = []\n    parts.append(one.s(x))\n    parts.append(one.s(x, x))\n    group(parts)()",
            "several numbers",
        ),
        (
            "parts = []\n    parts.append(one.s(x))\n    parts.pop()\n    group(parts)()",
            "known only at run time",
        ),
        ("parts = [two.s(1)]\n    parts.append(one.s(x))\n    group(parts)()", "known only at run time"),
        (
            "parts = []\n    parts.append(one.s(x))\n    fill(parts)\n    group(parts)()",
            "known only at run time",
        ),
        ("parts = load()\n    parts.append(one.s(x))\n    group(parts)()", "known only at run time"),
        ("group(one.s(1) for _ in x)()", "a list of equal signatures"),
        ("chain(one.s(x), group(two.s(y) for y in x))()", "known only at run time"),
        ("chain(one.s(lambda: x), two.s())()", "not JSON"),
        ("chain(one.s(y for y in x), two.s())()", "not JSON"),
        ("chain(one.s({x}), two.s())()", "not JSON"),
        ("chain(one.s(self), two.s())()", "not JSON"),
        ("chain(one.s(y := x), two.s(y))()", "gives a variable a value"),
        ("chain(one.s(two), two.s())()", "is a task"),
        ("chain(one.s(two.s(1)), two.s())()", "is a task"),
        ("chain(one.s(x.delay().id), two.s())()", "starts a task"),
        ("chain(one.s(*x), two.s())()", "spread with *"),
        ("chain(one.s(**x), two.s())()", "spread with **"),
        ("group(one.s(*y) for y in x)()", "spread with *"),
    ],
)
def test_canvas_that_no_parameter_can_give_is_named(tmp_path: Path, body: str, reason: str) -> None:
    (tmp_path / "depot.py").write_text(f"{TASKS}def go(self, x):\n    {body}\n")
    source = CeleryProject(tmp_path / "depot.py")
    project = source.mapped()
    assert not project.workflows
    assert any(gap.what.startswith("the canvas") and reason in gap.what for gap in source.report.gaps), (
        source.report.gaps
    )
