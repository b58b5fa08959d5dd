"""The command `penstock demo`, which turns the history of a git repository into events, rules, executions and a
report, on this machine alone."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from penstock.cli.demo_run import DemoRun, Figures
from penstock.cli.output import VisibleConsole, span, table
from penstock.client.client import Client
from penstock.client.installation import HOME
from penstock.errors import ConfigurationError, NotFound
from penstock.extras import require
from penstock.language.definitions.importing import imported
from penstock.operate.check import check
from penstock.service.assembly import run as run_service
from penstock.service.assembly import stop_on_signals
from penstock.store.upkeep.demo import NotCompleted
from penstock.store.upkeep.invariants import INVARIANTS

QUICK: dict[str, Any] = {
    "log_level": "error",
    "concurrency": 16,
    "heartbeat_interval": 1.0,
    "stale_threshold": 3.0,
    "sweep_interval": 1.0,
    "poll_interval": 1.0,
    "lease": 5.0,
    "restage_age": 5.0,
}
"""Settings with which the work of a killed run is taken over within seconds."""
SERVERS = ("PENSTOCK_DATABASE_URL", "PENSTOCK_BROKER_URL")
"""The variables whose servers the demo does not use."""

say = VisibleConsole(highlight=False)


def demo(
    folder: Annotated[Path, typer.Argument(help="A git repository, or any folder of files.")] = Path("."),
    commits: Annotated[int, typer.Option(min=1, help="The maximum number of commits, newest first.")] = 200,
    files: Annotated[
        int, typer.Option(min=1, help="The maximum number of Python files in these folders.")
    ] = 400,
    home: Annotated[
        Path, typer.Option(envvar="PENSTOCK_HOME", help="The folder of the embedded database.")
    ] = HOME,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the data of earlier runs.")] = False,
    browse: Annotated[
        bool, typer.Option("--open", help="Open the pages in a browser, and run until Ctrl-C.")
    ] = False,
) -> None:
    """See Penstock work: every commit of a repository becomes an event, rules select some, and actions look at the
    changes."""
    for name in SERVERS:
        os.environ.pop(name, None)
    failed: list[NotCompleted] = []

    require("embedded", "api")

    async def start() -> None:
        failed.extend(await _show(folder.resolve(), commits, files, home, fresh, browse))

    run_service(start)
    if failed:
        raise typer.Exit(1)


def example() -> Path:
    """Return the path of the example definitions. Raises ConfigurationError if they are not installed."""
    for place in (Path(__file__).parents[3], Path(sys.prefix) / "share/penstock"):
        if (place / "examples/git_history").is_dir():
            return place / "examples/git_history"
    raise ConfigurationError(
        "the examples are not installed here", hint="Run `make demo` in a checkout of Penstock."
    )


async def _show(
    folder: Path, commits: int, files: int, home: Path, fresh: bool, browse: bool
) -> list[NotCompleted]:
    """Run the demo, and print its results. Return the executions that did not complete. With `browse`, or in a
    terminal, the pages stay available until Ctrl-C."""
    from penstock.client.local_installation import LocalInstallation

    began = time.perf_counter()
    say.print("Starting PostgreSQL, an executor and a worker ...", style="dim")
    async with LocalInstallation.started(
        home, modules=[str(example())], fresh=fresh, overrides=QUICK
    ) as local:
        say.print(f"ready after {time.perf_counter() - began:.1f} s: {local.describe()}", style="dim")
        repository: ModuleType = imported("git_history.repository")
        description, payloads = repository.events(folder, commits=commits, files=files)
        if not payloads:
            raise NotFound(
                f"{folder} has no files to analyze", hint="Name a git repository: penstock demo FOLDER"
            )
        say.print(f"\nEvents: {escape(description)}\n")
        say.print(f"pages: [bold]{local.address}[/bold]")
        if browse:
            local.show()
        async with Client.connect(local.settings) as client:
            run = DemoRun(client)
            if leftover_count := await run.left_over():
                say.print(
                    f"An earlier run was interrupted. Its {leftover_count} open executions are finished now."
                )
            with _progress() as progress:
                await run.publish(payloads)
                await _follow(run, progress, len(payloads))
                report = await run.report()
            figures = await run.figures()
            broken = [f for f in await check(client.session) if f.violations]
            failed = await run.failed()
        _print_report(report)
        _print_figures(figures, len(payloads), broken=[finding.says for finding in broken], failed=failed)
        if browse or sys.stdin.isatty():
            say.print(
                f"[bold]See the pages:[/bold] {local.address}/executions/{figures.largest or ''} (Ctrl-C stops the demo)"
            )
            await local.until(stop_on_signals().requested)
    _print_next(figures)
    return failed


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description:24}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=say,
    )


async def _follow(run: DemoRun, progress: Progress, events: int) -> None:
    """Show the progress until all executions have ended."""
    published = progress.add_task("events published", total=events)
    progress.update(published, completed=events)
    bars: dict[str, TaskID] = {
        action: progress.add_task(action, total=total) for action, total in (await run.expected()).items()
    }
    async for done in run.progress():
        for action, count in done.items():
            if action in bars:
                progress.update(bars[action], completed=count)


def _print_report(report: Mapping[str, Any]) -> None:
    say.print(
        f"\n[bold]Report[/bold]  {report['commits_with_python']} of them with Python, "
        f"{report['files_measured']} files measured, {report['lines_read']} lines, "
        f"{report['functions_read']} functions, {report['words_in_documents']} words of documents"
    )
    for title, lines in (
        ("most complex", [f"{f['name']} ({f['complexity']}) in {f['path']}" for f in report["most_complex"]]),
        ("most changed", [f"{f['path']} ({f['commits']} commits)" for f in report["most_changed"]]),
        ("largest", [f"{c['subject']} ({c['lines']} lines)" for c in report["largest"]]),
    ):
        for line in lines[:3]:
            say.print(f"  [dim]{title:13}[/dim] {escape(line)}", no_wrap=True, overflow="ellipsis")


def _print_figures(figures: Figures, events: int, *, broken: list[str], failed: list[NotCompleted]) -> None:
    say.print("\n[bold]What ran[/bold]")
    table(
        ["action", "ran", "attempts", "completed", "p50", "p95"],
        [(row.action, row.ran, row.tries, row.completed, row.p50, row.p95) for row in figures.actions],
    )
    say.print(
        f"\n{events} events, {figures.matches} matches of rules, [bold]{figures.executions} executions in "
        f"{span(figures.duration)}[/bold]: {figures.executions / max(0.001, figures.duration.total_seconds()):.0f} a second"
    )
    for row in failed:
        say.print(f"[red]{row.status}[/red] {row.action} {row.id}: {escape(str(row.reason))}")
    if broken:
        say.print(f"[red]Violated invariants: {escape('; '.join(broken))}[/red]")
    else:
        say.print(
            "Each execution ran once, and none was lost: `penstock check` found no violation of its "
            f"{len(INVARIANTS)} invariants."
        )


def _print_next(figures: Figures) -> None:
    command = _command()
    say.print("The database is stopped, and its data is kept. [bold]Next commands[/bold]")
    for words, does in (
        ("executions", "list the executions, newest first"),
        (f"show {figures.largest}", "show the execution of the commit with the most files"),
        (f"show {figures.event}", "show an event, and why each rule matched or did not match"),
        ("doctor", "is all well?"),
        (
            f"dev --module {os.path.relpath(example())}",
            "keep Penstock running, open its pages, and publish your own events",
        ),
    ):
        say.print(f"  {command} {words}", soft_wrap=True)
        say.print(f"      [dim]{does}[/dim]")


def _command() -> str:
    """Return the command as it is typed in this environment."""
    program = Path(sys.argv[0])
    on_path = shutil.which("penstock")
    return (
        "penstock" if on_path and Path(on_path).resolve() == program.resolve() else os.path.relpath(program)
    )


def add_to(app: typer.Typer) -> None:
    app.command()(demo)
