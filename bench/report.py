"""`python -m bench.report`: docs/benchmarks.md and its drawings, made of the figures of one run."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bench import lines, plots, tables
from bench.comparisons import COMPARISONS, WHY, Comparison
from bench.figures import Figure
from bench.machine import Ran
from bench.peers import ROOT

FOLDER = ROOT / "docs" / "benchmarks"
FIGURES = ROOT / "bench" / "figures.jsonl"
PAGE = ROOT / "docs" / "benchmarks.md"
BUSY = 0.15
"""Share of the machine that went to others, from which times and rates say little."""
ENOUGH = 3
"""Rounds, for a median that one slow minute does not move."""
OURS = "penstock"
COMMAND = "python -m bench.report"

HEAD = """# Benchmarks

Penstock beside what else there is, on one machine: first the drawings, then every figure, then how it was
measured. This page and its drawings are made of [the figures](../bench/figures.jsonl) by

    {command}

{doubt}{at} UTC, {rounds} of each system, with about {seconds:g} s for a rate and {samples} samples at 20 a second.
{cores} cores, {processor}, {memory_gib} GiB, {system}. {versions}.
PostgreSQL and RabbitMQ have their default, durable settings and share the machine with everything else.
"""
DOUBT = """> **Preliminary: {why}.** {loaded:.0%} of the machine went to processes outside the run (median). Rates and times
> say little then; CPU seconds, commits and log are the steadier figures.

"""
METHOD = """## How it was measured

* A no-op writes two times into memory that all processes share. So *start* is when it began, without asking anybody.
* *Recorded* is when PostgreSQL committed the end (`pg_xact_commit_timestamp`), or what the system's own server says.
* A *rate* is from the first submit to the last recorded end, of as many as take some seconds, submitted while they run.
* CPU is user and system time of whole process trees, all of PostgreSQL and RabbitMQ included, until half a second after
  the last end. The harness is in no group.
* The *probe* makes the hops of an execution and does nothing else: three commits and two deliveries over quorum queues.
* Each figure is the median over the rounds. A round brings every system up once, on a fresh database and virtual host; rounds
  may have been runs of their own, one after the other. A chain is the median of three in each, and so is a fan-out: the first
  after a start has plans made and connections opened.
* The same machine is twice as fast on some days as on others, for all of them alike: figures of one page can be compared with
  each other, and not with those of another day.
* Where Penstock's own time goes, and what would have to be given up for more, is
  [written down](decisions/0036-where-speed-stops.md).
* Durable everywhere: synchronous commits, persistent messages, confirms, acknowledged after the work. Temporal is its
  development server on a SQLite file (`synchronous=FULL`), since its packages bring no server on PostgreSQL; Restate
  syncs its own log. Dramatiq, Procrastinate, PgQueuer and Graphile Worker keep no results.
* A client waits for a result as the system has it: Penstock, Temporal and Restate have a call that waits; Celery is asked
  every 20 ms, Taskiq and DBOS every 10 ms.
* Every system runs with the settings that were best for it; [its module](../bench/systems) names them.
  [The benchmark](../bench/README.md) says what each work does.
"""


def doubt(ran: Ran, figures: Sequence[Figure]) -> str:
    """What speaks against these figures, before anything else is said; empty for rounds enough on a quiet machine."""
    loads = [figure.value for figure in figures if figure.metric == "foreign_load"]
    loaded = statistics.median(loads) if loads else 0.0
    why = ["too few rounds"] * (ran.rounds < ENOUGH) + ["a busy machine"] * (loaded > BUSY)
    return DOUBT.format(why=", ".join(why), loaded=loaded) if why else ""


def label(figure: Figure) -> str:
    return f"{figure.system} ({figure.transport})"


def ahead(comparison: Comparison, figures: Sequence[Figure]) -> str:
    """Who does better than Penstock on one of its transports, and why."""
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
    """Its drawing, which is written to the folder, and what is to be said of it. Empty without figures."""
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


def page(ran: Ran, figures: Sequence[Figure], folder: Path) -> str:
    """The whole page; its drawings go to the folder."""
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
            *filter(None, (section(comparison, figures, folder) for comparison in COMPARISONS)),
            *([f"## What failed\n\n{failures}"] if failures else []),
            "## Every figure\n",
            tables.markdown(figures),
            METHOD,
        ]
    )


def main(figures: Annotated[Path, typer.Argument(help="What `--jsonl` wrote.")] = FIGURES) -> None:
    """Write docs/benchmarks.md and its drawings."""
    PAGE.write_text(page(*lines.read(figures), FOLDER))


if __name__ == "__main__":
    typer.run(main)
