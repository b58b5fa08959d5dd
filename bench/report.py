"""`python -m bench.report`: docs/benchmarks.md and its drawings, made of the figures of one run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench import plots, result_file, tables
from bench.comparisons import COMPARISONS, WHY, Comparison
from bench.figures import Figure
from bench.machine import Ran
from bench.peers import ROOT
from bench.works import LOADS

FOLDER = ROOT / "docs" / "benchmarks"
FIGURES = ROOT / "bench" / "figures.jsonl"
PAGE = ROOT / "docs" / "benchmarks.md"
BUSY = 0.15
"""Share of the machine that went to others, from which times and rates say little."""
ENOUGH = 3
"""Rounds, for a median that one slow minute does not move."""
OURS = "penstock"
COMMAND = "python -m bench.report"
CURVES = (
    ("curve-start", "start_p50_ms", "Submit to begin: milliseconds, p50"),
    ("curve-cpu", "cpu_per_1000_total", "CPU seconds of all processes per 1,000 executions"),
)
CURVES_HEAD = """## From 20 to 4,000 a second

One submit after the other, evenly. A system is shown up to the rate that its own 100 callers reach; less is better in both. The
tables below have the 99th percentiles.
"""

HEAD = """# Benchmarks

This page compares Penstock with other systems on one machine: first the drawings, then every figure, then the method.
This command makes the page and its drawings from [the figures](../bench/figures.jsonl):

    {command}

{doubt}{at} UTC, {rounds} of each system, with about {seconds:g} s for a rate and {samples} samples at 20 a second.
{cores} cores, {processor}, {memory_gib} GiB, {system}. {versions}.
PostgreSQL and RabbitMQ have their default, durable settings and share the machine with everything else.
"""
DOUBT = """> **Preliminary: {why}.** {loaded:.0%} of the machine went to processes outside the run (median). Rates and times
> say little then; CPU seconds, commits and log are the steadier figures.

"""
METHOD = """## How it was measured

* A no-op writes two times into memory that all processes share. So *start* is its true begin, without a query.
* *Recorded* is when PostgreSQL committed the end (`pg_xact_commit_timestamp`), or the time that the system's own server reports.
* A *rate* covers the first submit to the last recorded end of a run of some seconds, with submits during the run.
* CPU is the user and system time of whole process trees, including all of PostgreSQL and RabbitMQ, until half a second
  after the last end. No group includes the harness.
* The *probe* makes the hops of an execution and does nothing else: three commits and two deliveries over quorum queues.
* Each figure is the median over the rounds. A round starts every system once, on a fresh database and virtual host.
  Rounds may be separate runs, one after the other. In each round, a chain or a fan-out is the median of three, since the
  first after a start also makes plans and opens connections.
* The same machine is twice as fast on some days as on others, for all systems alike. So compare figures of one page
  with each other, and not with figures of another day.
* A [decision](decisions/0036-where-speed-stops.md) explains how Penstock spends its own time, and the price of more speed.
* The clock of Node has whole milliseconds. So the times of Graphile Worker may be one millisecond too short, and are below
  zero if it begins at once.
* All systems are durable: synchronous commits, persistent messages, confirms, acknowledgement after the work. Temporal runs
  as its development server on a SQLite file (`synchronous=FULL`), since its packages contain no server for PostgreSQL.
  Restate syncs its own log. Dramatiq, Procrastinate, PgQueuer and Graphile Worker keep no results.
* A client waits for a result in the way of the system. Penstock, Temporal and Restate have a call that waits. The client
  polls Celery every 20 ms, and Taskiq and DBOS every 10 ms.
* Every system runs with its best settings, which [its module](../bench/systems) names.
  [The benchmark](../bench/README.md) describes each workload.
"""


def doubt(ran: Ran, figures: Sequence[Figure]) -> str:
    """Return a warning about these figures; empty for enough rounds on a quiet machine."""
    loads = [figure.value for figure in figures if figure.metric == "foreign_load"]
    loaded = statistics.median(loads) if loads else 0.0
    why = ["too few rounds"] * (ran.rounds < ENOUGH) + ["a busy machine"] * (loaded > BUSY)
    return DOUBT.format(why=", ".join(why), loaded=loaded) if why else ""


def label(figure: Figure) -> str:
    return f"{figure.system} ({figure.transport})"


def ahead(comparison: Comparison, figures: Sequence[Figure]) -> str:
    """Return the peers that are ahead of Penstock on one of its transports, with the reasons."""
    ours = {figure.transport: figure.value for figure in figures if figure.system == OURS}
    sentences = []
    for figure in figures:
        behind = [t for t, value in ours.items() if comparison.better(figure.value, value)]
        if figure.system in (OURS, "probe") or not behind:
            continue
        where = "" if len(behind) == len(ours) else f" of Penstock on {' and '.join(behind)}"
        why = WHY.get((comparison.subject, figure.system), "Why is not known yet.")
        sentences.append(f"* **{label(figure)}** is ahead{where}. {why}")
    return "\n".join(sentences or ["No peer is ahead."]) if ours else ""


def section(comparison: Comparison, figures: Sequence[Figure], folder: Path) -> str:
    """Return the section of a drawing with its text, and write the drawing to the folder. Empty without figures."""
    selected = [f for f in figures if (f.work, f.metric) == (comparison.work, comparison.low)]
    selected.sort(key=lambda figure: figure.value, reverse=comparison.more)
    if not selected:
        return ""
    highs = {
        (f.system, f.transport): f.value
        for f in figures
        if (f.work, f.metric) == (comparison.work, comparison.high)
    }
    rows = [
        plots.Row(label(f), f.value, highs.get((f.system, f.transport)), f.system == OURS) for f in selected
    ]
    (folder / f"{comparison.name}.svg").write_text(plots.drawn(comparison.axis, rows))
    picture = f"![{comparison.axis}]({folder.name}/{comparison.name}.svg)"
    return f"## {comparison.title}\n\n{comparison.text}\n\n{picture}\n\n{ahead(comparison, selected)}\n"


def curve(name: str, metric: str, axis: str, figures: Sequence[Figure], folder: Path) -> str:
    """Draw a metric of each system at each load that it reaches, into the folder. Return the picture for the page, or an
    empty text without figures."""
    loads = {"latency-20": 20} | {f"load-{rate}": rate for rate in LOADS}
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for figure in figures:
        if figure.metric == metric and figure.work in loads and figure.value > 0:
            points.setdefault((figure.system, figure.transport), []).append(
                (loads[figure.work], figure.value)
            )
    drawn = [
        plots.Curve(f"{system} ({transport})", sorted(values), system == OURS)
        for (system, transport), values in points.items()
        if len(values) > 1
    ]
    if not drawn:
        return ""
    (folder / f"{name}.svg").write_text(plots.curves(axis, "submits a second", drawn))
    return f"![{axis}]({folder.name}/{name}.svg)\n"


def curves(figures: Sequence[Figure], folder: Path) -> str:
    """Return the section with the curves, or an empty text without figures."""
    pictures = [curve(*of, figures, folder) for of in CURVES]
    return "\n".join([CURVES_HEAD, *pictures]) if any(pictures) else ""


def page(ran: Ran, figures: Sequence[Figure], folder: Path) -> str:
    """Return the whole page, and write its drawings to the folder."""
    versions = ", ".join(f"{name} {version}" for name, version in ran.versions.items())
    rounds = "one round" if ran.rounds == 1 else f"medians of {ran.rounds} rounds"
    head = HEAD.format(
        command=COMMAND,
        doubt=doubt(ran, figures),
        at=ran.at,
        rounds=rounds,
        seconds=ran.seconds,
        samples=ran.samples,
        cores=ran.cores,
        processor=ran.processor,
        memory_gib=ran.memory_gib,
        system=ran.system,
        versions=versions,
    )
    failures = "".join(f"* {failure}\n" for failure in ran.failures)
    return "\n".join(
        [
            head,
            *filter(None, [curves(figures, folder)]),
            *filter(None, (section(comparison, figures, folder) for comparison in COMPARISONS)),
            *([f"## What failed\n\n{failures}"] if failures else []),
            "## Every figure\n",
            tables.markdown(figures),
            METHOD,
        ]
    )


def main(figures: Annotated[Path, typer.Argument(help="What `--jsonl` wrote.")] = FIGURES) -> None:
    """Write docs/benchmarks.md and its drawings."""
    PAGE.write_text(page(*result_file.read(figures), FOLDER))


if __name__ == "__main__":
    typer.run(main)
