"""The report counts a definition as mapped only if it has no gap of its own."""

from __future__ import annotations

from pathlib import Path

from penstock_import.report import Report
from penstock_import.stackstorm import StackStormPack

ACTION = "name: {0}\nrunner_type: {1}\nentry_point: {2}\n"
FILES = {
    "pack.yaml": "name: depot\n",
    "actions/one.yaml": ACTION.format("one", "orquesta", "workflows/flow.yaml"),
    "actions/two.yaml": ACTION.format("two", "orquesta", "workflows/flow.yaml"),
}


def mapped(folder: Path, flow: str) -> Report:
    """Return the report of a pack with two actions for the same workflow file."""
    for name, text in (FILES | {"actions/workflows/flow.yaml": flow}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    source = StackStormPack(folder)
    source.mapped()
    return source.report


def test_gap_of_a_shared_file_counts_for_each_definition(tmp_path: Path) -> None:
    report = mapped(tmp_path, "version: 1.0\ntasks:\n  t: {action: core.local cmd=<% frobnicate() %>}\n")
    assert (report.found["workflows"], report.mapped["workflows"]) == (2, 0)


def test_line_that_does_not_count_is_one_line_for_two_definitions(tmp_path: Path) -> None:
    """A repeated line that does not count must not hide a gap that comes after it."""
    flow = "version: 1.0\ntasks:\n  t: {action: core.noop, next: [{when: plain, do: u}]}\n  u: {action: core.noop%s}\n"
    report = mapped(tmp_path, flow % "")
    assert report.mapped["workflows"] == 2
    assert report.found["ignored parts"] == 1
    report = mapped(tmp_path, flow % ", colour: red")
    assert report.mapped["workflows"] == 0


def test_gap_is_recorded_once() -> None:
    report = Report()
    assert report.gap("a", 1, "x", "y")
    assert not report.gap("a", 1, "x", "y")
    assert (len(report.gaps), report.recorded) == (1, 2)
    assert report.gap("a", 2, "x", "y", counts=False)
    assert report.recorded == 2
