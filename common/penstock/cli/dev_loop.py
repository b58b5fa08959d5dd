"""The loops of `penstock dev`, which reload saved files, and print the executions that run."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
from rich.markup import escape
from watchfiles import DefaultFilter, awatch

from penstock.cli.lint_files import print_faults
from penstock.cli.output import STYLES, complain, err, span
from penstock.client.local_installation import LocalInstallation
from penstock.errors import PenstockError
from penstock.language.loading.likely_typos import likely_typos
from penstock.language.loading.reload import folders_of, reload_all
from penstock.language.moves import FINAL, REQUESTED, RUNNING, WAITING
from penstock.operate.executions import described
from penstock.run.root_cause import headline
from penstock.store.events import rule_errors
from penstock.store.events.rule_errors import RuleError
from penstock.store.executions import changes
from penstock.store.executions.changes import Change
from penstock.store.executions.execution_list import ListedWait
from penstock.store.session import clock
from penstock.store.session.database import Database, Session

PAUSE = 0.3
"""The seconds between two looks for ended executions."""
MAX_NEWS = 200
"""The maximum number of moves, and of failures of rules, that one look reads."""
OVERLAP = timedelta(seconds=2)
"""The time before the last look that is read again, since a move may become visible after a later one."""
SHOWN = 100
"""The maximum length of a printed result, cause or question, in characters."""
SUFFIXES = (".py", ".yaml", ".yml")


class Definitions(DefaultFilter):
    """The filter for files of definitions, outside of .venv, .git and the like."""

    def __call__(self, change: Any, path: str) -> bool:
        return path.endswith(SUFFIXES) and super().__call__(change, path)


async def reload_changes(local: LocalInstallation, modules: Sequence[str], stop: asyncio.Event) -> None:
    """Apply the definitions of the modules whenever one of their files is saved, until `stop` is set. Faults are
    printed, and the last valid definitions stay in force."""
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
    sys.dont_write_bytecode = True  # a stale .pyc could be used after two saves within a second
    folders = folders_of(modules)
    async for saved in awatch(*folders, watch_filter=Definitions(), stop_event=stop, debounce=300, step=50):
        await take_over(local, modules, folders, sorted({Path(path).name for _, path in saved}))


async def take_over(
    local: LocalInstallation, modules: Sequence[str], folders: Sequence[Path], saved: Sequence[str]
) -> None:
    try:
        definitions = await asyncio.to_thread(reload_all, modules, folders)
        changed = [change for change in await local.take_over(definitions) if change.what != "unchanged"]
    except PenstockError as error:
        complain(error)
        err.print("[yellow]kept[/yellow]   the definitions from before. Correct the file, and save it again")
        return
    files = escape(", ".join(saved))
    if changed:
        summary = ", ".join(f"{change.kind} {change.ref} {change.what}" for change in changed)
        err.print(f"[green]taken[/green]  {files}: {escape(summary)}", highlight=False)
    else:
        err.print(f"[dim]saved[/dim]  {files}: no definition changed", highlight=False)
    print_faults(likely_typos(definitions), err)


async def print_executions(local: LocalInstallation) -> None:
    """Print what happens, until cancelled. Ended executions, failed attempts before others, waits for a person or an
    outside system, and rules that fail on an event have a line each."""
    database = Database(local.settings, role="dev")
    try:
        session = database.session()
        async for news in _news(session):
            if (line := await _line_of_news(session, news)) is not None:
                err.print(line, highlight=False)
    finally:
        await database.close()


async def _line_of_news(session: Session, news: Change | RuleError) -> str | None:
    """Return the line for a move or a failed rule; None for one that is not printed."""
    if isinstance(news, RuleError):
        return line_of_rule_error(news)
    execution = await described(session, news.id)
    return None if execution is None else line_of_move(news, execution)


async def _news(session: Session) -> AsyncIterator[Change | RuleError]:
    """Yield each move once: to a final status, back from a worker, and into a wait. And yield each failure of a rule on an event
    once."""
    at, announced = await clock.now(session), set[Change | RuleError]()
    while True:
        await asyncio.sleep(PAUSE)
        moves = await changes.after(session, at - OVERLAP, MAX_NEWS)
        for move in moves:
            is_taken_back = move.old == RUNNING and move.new == REQUESTED
            if (move.new in FINAL or move.new == WAITING or is_taken_back) and move not in announced:
                yield move
                announced.add(move)
        failures = await rule_errors.since(session, at - OVERLAP, MAX_NEWS)
        for failure in failures:
            if failure not in announced:
                yield failure
                announced.add(failure)
        at = max([at, *(move.at for move in moves), *(failure.at for failure in failures)])
        announced = {news for news in announced if news.at > at - 2 * OVERLAP}


def line_of_move(move: Change, execution: dict[str, Any]) -> str | None:
    """Return the line for a move of an execution; None for a move that is not printed."""
    if move.new in FINAL:
        return line_of(execution)
    if move.new == WAITING:
        wait: ListedWait | None = execution["waits_for"]
        if wait is None or wait.execution_id != move.id or wait.because not in ("inquiry", "outside"):
            return None
        return _line(execution, f"[{STYLES[WAITING]}]{escape(_cut(wait.text))}[/{STYLES[WAITING]}]")
    attempts = [row for row in execution["attempts"] if row["attempt"] == move.attempt]
    if not attempts or attempts[0]["outcome"] not in ("failed", "timeout", "lost"):
        return None
    cause = escape(_cut(headline(attempts[0]["error"]) or ""))
    return _line(execution, f"[yellow]attempt {move.attempt} {attempts[0]['outcome']}[/yellow]  {cause}")


def line_of_rule_error(failure: RuleError) -> str:
    """Return the lines for a rule that failed on an event: the rule, the reason, the event, and what to do."""
    clock = failure.at.astimezone().strftime("%H:%M:%S")
    rule, cause = escape(failure.rule), escape(_cut(failure.error))
    return (
        f"[dim]{clock}[/dim] rule {rule}  [red]failed on an event[/red]  {cause}  [dim]{failure.event_id}[/dim]\n"
        f"[dim]         correct and save the rule. Then evaluate it again: penstock rules rerun {rule}[/dim]"
    )


def line_of(execution: dict[str, Any]) -> str:
    """Return the line for an ended execution: its start, action, title, outcome, duration, and its result or the cause
    of its failure."""
    status = execution["status"]
    style = STYLES.get(status, "")
    end = f"[{style}]{status}[/{style}]" if style else status
    duration = span(execution["finished_at"] - execution["created_at"])
    result = headline(execution.get("error")) or orjson.dumps(execution.get("result")).decode()
    return _line(execution, f"{end} in {duration}  {escape(_cut(result))}")


def _line(execution: dict[str, Any], news: str) -> str:
    """Return a line with the start, the action and the title of an execution, the markup `news`, and the id."""
    indent = "  " if execution["parent"] else ""
    name = f"{indent}{execution['action']}" + (f" ({execution['task']})" if execution["task"] else "")
    title = f" [bold]{escape(execution['title'])}[/bold]" if execution.get("title") else ""
    clock = execution["created_at"].astimezone().strftime("%H:%M:%S")
    return f"[dim]{clock}[/dim] {escape(name)}{title}  {news}  [dim]{execution['id']}[/dim]"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
