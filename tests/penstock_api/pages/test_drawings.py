"""The places of lines and boxes, and the fields of a form."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import combinations
from uuid import UUID

import pytest

from penstock.language.terms.ids import new_id
from penstock.language.workflows import Workflow, from_yaml
from penstock.language.workflows.graph import Graph
from penstock.language.workflows.progress import TaskProgress
from penstock.operate.awaited_steps import StepWait
from penstock.operate.durable_steps import Step
from penstock.store.executions.timelines import Stay
from penstock_api.pages.drawings import plot
from penstock_api.pages.drawings.layout import HIGH, LARGE, WIDE, layout
from penstock_api.pages.drawings.step_timeline import step_ends, step_status, step_timeline
from penstock_api.pages.drawings.timeline import HELD, QUEUED, RAN, Scale, drawn, parts, timeline
from penstock_api.pages.schema_form import decision, fields, is_approval
from penstock_api.pages.starters import other_values, starters
from penstock_api.pages.templating import aged, failure_line, linked, timed
from tests.penstock_api.pages import depot

BEGUN = datetime(2030, 1, 31, 9, tzinfo=UTC)
RUN = new_id()


def stay(
    status: str,
    since: float,
    until: float | None,
    task: str = "one",
    *,
    id: UUID | None = None,
    parent: UUID = RUN,
    is_workflow: bool = False,
) -> Stay:
    later = None if until is None else BEGUN + timedelta(seconds=until)
    began = BEGUN + timedelta(seconds=since)
    return Stay(id or new_id(), parent, task, is_workflow, status, began, later)


def seconds(*stays: Stay, now: float = 100, is_stopped: bool = False) -> list[tuple[str, float, float]]:
    found = parts(stays, BEGUN + timedelta(seconds=now), is_stopped=is_stopped)
    return [(k, (a - BEGUN).total_seconds(), (b - BEGUN).total_seconds()) for k, (a, b) in found]


def test_a_graph_goes_from_left_to_right_and_no_box_lies_on_another() -> None:
    drawn = layout(Graph(depot.TRUCK))
    at = {box.names[0]: box for box in drawn.boxes}
    assert at["check"].x < at["load"].x == at["weigh"].x < at["drive"].x < at["again"].x
    for one, other in combinations(drawn.boxes, 2):
        assert abs(one.x - other.x) >= WIDE or abs(one.y - other.y) >= HIGH
    assert all(box.x + WIDE <= drawn.width and box.y + HIGH <= drawn.height for box in drawn.boxes)
    assert len(drawn.arrows) == 5
    assert [arrow.label for arrow in drawn.arrows if arrow.label]


NUMBER = re.compile(r"-?\d+")


def points(path: str) -> Iterator[tuple[float, float]]:
    """Yield points of an arrow: its curves and straight parts in small steps."""
    x = y = 0.0
    for part in re.findall(r"[MCH][^MCH]*", path):
        values = [float(value) for value in NUMBER.findall(part)]
        steps = [step / 40 for step in range(41)]
        if part[0] == "M":
            x, y = values
        elif part[0] == "H":
            yield from ((x + (values[0] - x) * t, y) for t in steps)
            x = values[0]
        else:
            x1, y1, x2, y2, x3, y3 = values
            for t in steps:
                a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
                yield a * x + b * x1 + c * x2 + d * x3, a * y + b * y1 + c * y2 + d * y3
            x, y = x3, y3


SKIPPING = """
workflow: invoices.book
tasks:
  check: {action: invoices.check}
  approve: {action: invoices.approve, needs: [check]}
  store: {action: invoices.store, needs: [approve]}
  sign: {action: invoices.sign, needs: [approve]}
  announce: {action: invoices.announce, needs: [approve, store, check]}
  close: {action: invoices.close, needs: [announce, sign, check]}
"""


@pytest.mark.parametrize(
    "flow", [from_yaml(SKIPPING), depot.TRUCK, depot.TOUR], ids=["skips", "truck", "tour"]
)
def test_no_arrow_lies_below_a_box(flow: Workflow) -> None:
    drawn = layout(Graph(flow))
    assert flow.ref != "invoices.book" or sum("H" in arrow.path for arrow in drawn.arrows) == 4
    for arrow in drawn.arrows:
        assert all(0 <= x <= drawn.width and 0 <= y <= drawn.height for x, y in points(arrow.path))
        below = {
            box.names[0]
            for x, y in points(arrow.path)
            for box in drawn.boxes
            if box.x < x < box.x + WIDE and box.y < y < box.y + HIGH
        }
        assert below == set(), f"{arrow.source} -> {arrow.target}"


def test_long_arrows_without_room_for_lanes_stay_straight() -> None:
    lines = ["workflow: a.b", "tasks:"]
    lines += [f"  t{n}: {{action: a.c, needs: [{', '.join(f't{m}' for m in range(n))}]}}" for n in range(40)]
    drawn = layout(Graph(from_yaml("\n".join(lines))))
    assert len(drawn.arrows) == 780
    assert not any("H" in arrow.path for arrow in drawn.arrows)


def test_the_exit_task_is_drawn_last() -> None:
    flow = from_yaml("workflow: a.b\ntasks: {x: {action: a.c}}\non_exit: {action: a.d}")
    at = {box.names[0]: box.x for box in layout(Graph(flow)).boxes}
    assert at["x"] < at["on_exit"]


def test_the_same_graph_is_laid_out_once() -> None:
    assert layout(Graph(depot.TOUR)) is layout(Graph(depot.TOUR))


@pytest.mark.parametrize(("tasks", "collapsed"), [(LARGE, False), (LARGE + 10, True)])
def test_a_large_graph_has_a_box_for_each_column(tasks: int, collapsed: bool) -> None:
    drawn = layout(Graph(depot.wide(tasks)))
    assert drawn.collapsed == collapsed
    assert sum(len(box.names) for box in drawn.boxes) == tasks
    assert len(drawn.boxes) == (tasks // 10 if collapsed else tasks)


@pytest.mark.parametrize(
    ("schema", "kind", "types"),
    [
        ({"type": ["string", "array"]}, "mixed", ["string", "array"]),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, "mixed", ["string", "array"]),
        ({"oneOf": [{"type": "object"}, {"type": "string"}]}, "mixed", ["object", "string"]),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text", []),
        ({"anyOf": [{"type": "integer"}, {"type": "array"}]}, "json", []),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/a"}]}, "json", []),
        ({}, "json", []),
    ],
)
def test_value_of_several_types_has_a_field(schema: object, kind: str, types: list[str]) -> None:
    [field] = fields({"properties": {"to": schema}})
    assert (field.kind, list(field.types)) == (kind, types)


@pytest.mark.parametrize(("value", "text"), [("a", "a"), ("7", '"7"'), (["a"], '["a"]'), ('"', '"')])
def test_value_in_a_mixed_field_is_not_ambiguous(value: object, text: str) -> None:
    [field] = fields({"properties": {"to": {"type": ["string", "array"]}}}, value={"to": value})
    assert field.value == text


def test_waiting_stands_apart_from_running() -> None:
    assert seconds(stay("requested", 0, 1), stay("queued", 1, 4), stay("running", 4, 9)) == [
        (QUEUED, 0, 4),
        (RAN, 4, 9),
    ]


def test_of_many_items_something_runs_or_all_wait() -> None:
    found = seconds(
        stay("scheduled", 0, 2),
        stay("running", 2, 5),
        stay("scheduled", 0, 6),
        stay("running", 6, 8),
        stay("waiting", 8, None),
        now=10,
    )
    assert found == [(QUEUED, 0, 2), (RAN, 2, 5), (QUEUED, 5, 6), (RAN, 6, 8), (HELD, 8, 10)]


def test_inner_workflow_runs_only_while_a_task_of_it_runs() -> None:
    inner = stay("running", 0, None, is_workflow=True)
    inside = (stay("scheduled", 0, 1), stay("running", 1, 4), stay("requested", 4, 5), stay("running", 5, 6))
    shown = seconds(inner, *inside, now=10)
    assert shown == [(QUEUED, 0, 1), (RAN, 1, 4), (QUEUED, 4, 5), (RAN, 5, 6), (HELD, 6, 10)]


def test_stopped_task_waits_since_its_last_status() -> None:
    stays = (stay("scheduled", 0, 1), stay("running", 1, 4), stay("requested", 4, None))
    assert seconds(*stays, now=10)[-1] == (QUEUED, 4, 10)
    assert seconds(*stays, now=10, is_stopped=True) == [(QUEUED, 0, 1), (RAN, 1, 4), (HELD, 4, 10)]


def test_step_with_a_child_is_drawn_by_the_history_of_the_child() -> None:
    child = new_id()
    paused = step("run", "running")
    paused.execution, paused.paused = child, True
    stays = [
        stay("running", 0, None, id=child, is_workflow=True),
        stay("running", 2, 5, parent=child),
        stay("requested", 5, None, parent=child),
    ]
    drawn = step_timeline([paused], BEGUN, BEGUN + timedelta(seconds=10), stays)
    assert drawn is not None
    [row] = drawn.rows
    assert (row.status, [part.kind for part in row.segments], row.ran) == ("paused", [HELD, RAN, HELD], 3)


def test_answered_step_ends_with_its_question() -> None:
    """A step with a child execution is recorded when the child starts."""
    question = step("ask", "completed")
    question.execution = new_id()
    history = [stay("waiting", 0, 6, id=question.execution)]
    assert step_ends([question], history, {}) == {"wait": BEGUN + timedelta(seconds=6)}
    assert step_ends([question], [], {"wait": 7.0}) == {"wait": BEGUN + timedelta(seconds=7)}


def test_sleep_ends_at_its_instant_and_open_step_has_no_end() -> None:
    until = BEGUN + timedelta(hours=1)
    assert step_ends([step("sleep", "completed", result={"until": until.isoformat()})], [], {}) == {
        "wait": until
    }
    assert step_ends([step("sleep", "started", result={"until": until.isoformat()})], [], {}) == {}


def test_a_timeline_has_rows_inside_rows_and_stays_in_its_frame() -> None:
    inner = new_id()
    inside = TaskProgress("deep", "a.b", [], "running", BEGUN + timedelta(seconds=5))
    outer = TaskProgress("one", "a.c", [], "running", BEGUN, execution=inner, critical=True, inside=[inside])
    never = TaskProgress("never", "a.d", ["one"], "not started")
    stays = [
        stay("running", 0, None, id=inner, is_workflow=True),
        stay("running", 5, 5.0001, "deep", parent=inner),
        stay("running", 9.9999, 10, "deep", parent=inner),
    ]
    chart = timeline([never, outer], stays, RUN, BEGUN, BEGUN + timedelta(seconds=10))
    assert [(row.name, row.depth, row.critical) for row in chart.rows] == [
        ("one", 0, True),
        ("deep", 1, False),
        ("never", 0, False),
    ]
    kinds = [part.kind for part in chart.rows[0].segments]
    assert kinds == [HELD, RAN, HELD, RAN]
    for row in chart.rows:
        assert all(part.width >= 2 and part.x + part.width <= 1000 for part in row.segments)
    assert [tick for _, tick in chart.ticks] == ["0", "2 s", "4 s", "6 s", "8 s", "10 s"]


@pytest.mark.parametrize(
    ("value", "top"), [(0, 1), (0.03, 0.05), (0.2, 0.2), (1, 1), (3, 5), (7, 10), (18_000, 20_000)]
)
def test_a_plot_ends_at_a_round_figure(value: float, top: float) -> None:
    assert plot.ceiling(value) == pytest.approx(top)


def test_a_line_is_broken_where_nothing_was() -> None:
    [points] = plot.lines([1.0, 2.0, None, 1.0]).lines
    assert [len(one.split()) for one in points] == [2, 2]


def test_a_form_asks_for_each_property_by_its_type() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1},
            "how": {"enum": ["a", 2]},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "pin": {"type": "string", "secret": True, "default": "0000"},
            "tags": {"type": "array"},
            "must": {"type": "string"},
        },
        "required": ["must"],
    }
    found = {field.name: field for field in fields(schema, "parameters")}
    assert {name: field.kind for name, field in found.items()} == {
        "must": "text",
        "n": "integer",
        "how": "choice",
        "maybe": "text",
        "pin": "secret",
        "tags": "json",
    }
    assert next(iter(found)) == "must"
    assert found["n"].minimum == 1
    assert found["how"].choices == [('"a"', "a"), ("2", "2")]
    assert found["pin"].value == ""
    assert found["tags"].at == '["parameters","tags"]'


@pytest.mark.parametrize(("schema", "kind"), [({"type": "boolean"}, "boolean"), (None, "json"), ({}, "json")])
def test_a_schema_that_is_not_an_object_is_one_field(schema: object, kind: str) -> None:
    [one] = fields(schema, "response")
    assert (one.kind, one.at) == (kind, '["response"]')


YES = {"type": "boolean"}


@pytest.mark.parametrize(
    ("schema", "decided", "approves"),
    [
        (YES, "answer", True),
        ({**YES, "title": "Is it raining"}, "Is it raining", False),
        ({"type": "object", "properties": {"approved": YES, "note": {"type": "string"}}}, "approved", True),
        ({"type": "object", "properties": {"leave": YES}, "required": ["leave"]}, "leave", False),
        ({"type": "object", "properties": {"a": YES, "b": YES}}, None, False),
        (
            {"type": "object", "properties": {"a": YES, "b": {"type": "string"}}, "required": ["b"]},
            None,
            False,
        ),
        ({"type": "string"}, None, False),
        (None, None, False),
    ],
)
def test_answer_that_needs_only_a_yes_or_no_has_buttons(
    schema: object, decided: str | None, approves: bool
) -> None:
    field = decision(fields(schema, "response"))
    assert (field and field.name) == decided
    assert (field is not None and is_approval(field)) is approves


@pytest.mark.parametrize(
    ("kind", "status", "running", "ended"),
    [
        ("sleep", "started", "waiting", "not finished"),
        ("signal", "started", "waiting", "not finished"),
        ("ask", "started", "waiting", "not finished"),
        ("wait_for", "started", "waiting", "not finished"),
        ("step", "started", "running", "not finished"),
        ("run", "started", "running", "not finished"),
        ("step", "cancelled", "cancelled", "cancelled"),
        ("step", "superseded", "superseded", "superseded"),
        ("step", "completed", "completed", "completed"),
        ("sleep", "timeout", "timed out", "timed out"),
        ("ask", "timeout", "timed out", "timed out"),
        ("wait_for", "timeout", "timed out", "timed out"),
        ("run", "timeout", "timeout", "timeout"),
        ("step", "failed", "failed", "failed"),
    ],
)
def test_step_is_shown_as_its_run_stands(kind: str, status: str, running: str, ended: str) -> None:
    one = step(kind, status)
    assert step_status(one, is_final=False) == running
    assert step_status(one, is_final=True) == ended


def test_cancelled_sleep_is_drawn_until_its_cancel() -> None:
    until = (BEGUN + timedelta(hours=1)).isoformat()
    cancelled = step("sleep", "cancelled", at=BEGUN + timedelta(seconds=6), result={"until": until})
    drawn = step_timeline([cancelled], BEGUN, BEGUN + timedelta(seconds=10))
    assert drawn is not None
    [row] = drawn.rows
    assert row.waited == 6


def test_steps_that_wait_together_are_drawn_until_now() -> None:
    """The arms of `ctx.first` are in one branch, and the second begins while the first waits."""
    until = (BEGUN + timedelta(days=14)).isoformat()
    sleep = step("sleep", "started", at=BEGUN, result={"until": until})
    wait = step("wait_for", "waiting", at=BEGUN + timedelta(seconds=1))
    again = step("wait_for", "waiting", at=BEGUN + timedelta(seconds=2))
    drawn = step_timeline([sleep, wait, again], BEGUN, BEGUN + timedelta(seconds=100))
    assert drawn is not None
    assert [row.waited for row in drawn.rows] == [100, 99, 98]


def test_step_between_two_attempts_is_drawn_as_waiting() -> None:
    tried = step("step", "started", at=BEGUN + timedelta(seconds=4))
    tried.took = 3.0
    tried.wait = StepWait(tried.at, BEGUN + timedelta(hours=1), "its attempt 2")
    assert step_status(tried, is_final=False) == "waiting"
    drawn = step_timeline([tried], BEGUN, BEGUN + timedelta(seconds=10))
    assert drawn is not None
    [row] = drawn.rows
    assert [(part.kind, part.seconds) for part in row.segments] == [(RAN, 3), (HELD, 6)]
    assert (row.ran, row.waited) == (3, 6)


def test_sleep_whose_result_was_set_has_no_due_instant() -> None:
    for result in ({"any": 1}, {"until": 1}, {"until": "soon"}, "soon"):
        assert step_timeline([step("sleep", "completed", result=result)], BEGUN, None) is not None


def test_age_in_a_sentence_becomes_a_time() -> None:
    shown = aged("Failed 703 ms ago: <b> broke 2 min ago.", BEGUN)
    assert shown.startswith(f'Failed <time datetime="{BEGUN.isoformat()}"')
    assert shown.endswith("</time>: &lt;b&gt; broke 2 min ago.")
    assert shown.count("data-ago") == 1


def test_instant_in_a_sentence_becomes_a_time() -> None:
    shown = timed("waits until 2026-12-01 14:51:57 UTC & not 2026-13-01 00:00:00 UTC")
    title = 'title="2026-12-01 14:51:57.000 UTC"'
    time = f'<time datetime="2026-12-01T14:51:57+00:00" {title} data-clock>2026-12-01 14:51:57 UTC</time>'
    assert shown == f"waits until {time} &amp; not 2026-13-01 00:00:00 UTC"


def step(kind: str, status: str, *, at: datetime = BEGUN, result: object = None) -> Step:
    return Step("wait", "wait", 1, [], kind, status, 1, 0.0, at, result, None, None)


def test_starters_are_links_and_the_rest_is_kept() -> None:
    event, run = str(new_id()), str(new_id())
    found = starters({"event": event, "rule": "shop.large", "depth": 2})
    assert [(one.word, one.name, one.path) for one in found] == [
        ("rule", "shop.large", "/rules/shop.large"),
        ("on event", event[-8:], f"/events/{event}"),
    ]
    assert other_values({"event": event, "rule": "shop.large", "depth": 2}) == {"depth": 2}
    rerun = {"rerun_of": run, "by": "user:ada", "reason": "the road is open", "from_task": "drive"}
    assert [(one.word, one.name) for one in starters(rerun)] == [("re-run of", run[-8:]), ("by", "user:ada")]
    assert [(one.word, one.name) for one in starters({"by": "token:ci"})] == [("", "token:ci")]
    assert not starters(None)


def test_executions_in_a_sentence_are_links_and_the_rest_is_text() -> None:
    id = new_id()
    said = linked(f"Waits for <b>. See why: penstock why {id}")
    assert said == f'Waits for &lt;b&gt;. <a href="/executions/{id}">See why.</a>'


def test_sentence_about_a_step_links_its_execution() -> None:
    id = new_id()
    sentence = linked(f"See step 'wait_for' with: penstock show {id}")
    assert sentence == f'<a href="/executions/{id}">See step &#39;wait_for&#39;.</a>'


def test_commands_in_a_sentence_keep_the_whole_id() -> None:
    id = new_id()
    link = f'<a href="/executions/{id}">{id}</a>'
    assert linked(f"penstock signal {id} paid VALUE") == f"penstock signal {link} paid VALUE"
    assert linked(f"See it with: penstock show {id}") == f"See it with: penstock show {link}"
    assert linked(f"Beside {id}.") == f'Beside <a href="/executions/{id}">{str(id)[-8:]}</a>.'


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.001, ["0", "0.2 ms", "0.4 ms", "0.6 ms", "0.8 ms", "1 ms"]),
        (0.7, ["0", "0.2 s", "0.4 s", "0.6 s"]),
        (2.2, ["0", "0.5 s", "1 s", "1.5 s", "2 s"]),
        (100, ["0", "20 s", "40 s", "60 s", "80 s", "100 s"]),
        (250, ["0", "1 min", "2 min", "3 min", "4 min"]),
        (9000, ["0", "30 min", "60 min", "90 min", "120 min", "150 min"]),
        (30 * 3600, ["0", "12 h", "24 h"]),
        (11 * 86_400, ["0", "5 d", "10 d"]),
    ],
)
def test_labels_of_an_axis_are_exact(seconds: float, labels: list[str]) -> None:
    axis = drawn([], Scale.of(BEGUN, BEGUN + timedelta(seconds=seconds)))
    assert [label for _, label in axis.ticks] == labels
    unit = 1000 / seconds
    sizes = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}
    for place, label in axis.ticks[1:]:
        number, name = label.split()
        assert place == pytest.approx(float(number) * sizes[name] * unit, abs=0.06)


@pytest.mark.parametrize(
    ("error", "line"),
    [
        ({"type": "KeyError", "message": "'glue'"}, "KeyError: 'glue'"),
        ({"page": 7}, '{"page":7}'),
        ({}, "{}"),
        ("away", "away"),
    ],
)
def test_summary_of_an_attempt_is_its_error_or_its_carry(error: object, line: str) -> None:
    assert failure_line(error) == line
