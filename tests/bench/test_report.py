"""The page that is made of figures; the one that is committed is made of those beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from bench import report, result_file
from bench.comparisons import COMPARISONS, WHY
from bench.figures import Figure
from bench.machine import Ran
from bench.systems import SYSTEMS
from bench.works import WORKS

RAN = Ran(
    at="2026-11-22 20:55", rounds=3, seconds=6, samples=200, cores=2, processor="a processor", memory_gib=24, system="Linux 6.1",
    versions={"PostgreSQL": "15.20"}, failures=[],
)  # fmt: skip


def rate(system: str, transport: str, value: float) -> Figure:
    return Figure(system, transport, "noop", "throughput", value, "1/s")


FIGURES = [
    rate("penstock", "rabbitmq", 15_600),
    rate("penstock", "postgres", 13_400),
    rate("pgqueuer", "postgres", 14_000),
    rate("celery", "rabbitmq", 576),
    Figure("penstock", "rabbitmq", "noop", "foreign_load", 0.05, "1"),
]


def test_a_run_is_read_as_it_was_written(tmp_path: Path) -> None:
    result_file.write(RAN, FIGURES, tmp_path / "figures.jsonl")
    assert result_file.read(tmp_path / "figures.jsonl") == (RAN, FIGURES)


def test_the_page_names_each_system_that_is_ahead_and_the_reason(tmp_path: Path) -> None:
    page = report.page(RAN, FIGURES, tmp_path)
    [said] = [line for line in page.splitlines() if "ahead" in line]
    assert said == (f"* **pgqueuer (postgres)** is ahead of Penstock on postgres. {WHY['many', 'pgqueuer']}")
    assert "Preliminary" not in page


def test_too_few_rounds_and_a_busy_machine_are_said_before_anything_else(tmp_path: Path) -> None:
    busy = [*FIGURES[:-1], replace(FIGURES[-1], value=0.6)]
    page = report.page(replace(RAN, rounds=1, failures=["celery: too slow"]), busy, tmp_path)
    assert "Preliminary: too few rounds, a busy machine.** 60%" in page
    assert "* celery: too slow" in page


def test_a_drawing_has_a_row_for_each_system_the_best_one_first(tmp_path: Path) -> None:
    report.page(RAN, FIGURES, tmp_path)
    drawing = ElementTree.parse(tmp_path / "throughput.svg")
    labels = [
        text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text") if "(" in (text.text or "")
    ]
    assert labels == [
        "penstock (rabbitmq)",
        "pgqueuer (postgres)",
        "penstock (postgres)",
        "celery (rabbitmq)",
    ]


def test_comparisons_are_measured_and_reasons_name_run_systems() -> None:
    assert {comparison.work for comparison in COMPARISONS} <= WORKS.keys()
    assert {system for _, system in WHY} <= {system.name for system in SYSTEMS}
    assert {subject for subject, _ in WHY} <= {comparison.subject for comparison in COMPARISONS}


def test_the_committed_page_and_its_drawings_are_made_of_the_figures_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / report.FOLDER.name
    folder.mkdir()
    assert report.page(*result_file.read(report.FIGURES), folder) == report.PAGE.read_text(), report.COMMAND
    for drawing in folder.iterdir():
        assert drawing.read_text() == (report.FOLDER / drawing.name).read_text(), report.COMMAND
