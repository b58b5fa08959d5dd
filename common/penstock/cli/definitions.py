"""The commands about definitions: apply, actions, triggers, rules."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.markup import escape

from penstock.cli import name_completion
from penstock.cli import rule_errors as cli_rule_errors
from penstock.cli import rule_replays as cli_rule_replays
from penstock.cli.arguments import parse_id
from penstock.cli.command_runner import wake_schedules, with_session
from penstock.cli.lint_files import print_faults
from penstock.cli.output import Json, err, json_line, listing, out, table
from penstock.cli.routes import warn
from penstock.cli.server import read
from penstock.client.installation import find_installation
from penstock.language.loading import load_all
from penstock.language.loading.likely_typos import likely_typos
from penstock.language.terms.windows import PATTERNS
from penstock.operate import event_rules, routes
from penstock.operate.apply import Change, register
from penstock.operate.routes import RouteUse
from penstock.operate.running_work import RUNS, RunningWork, running_work
from penstock.operate.why.answer import count
from penstock.service.process_secrecy import hidden_secrets
from penstock.store.session.database import Session

SHOWN_FORMER, SHOWN_WORKERS = 10, 3
"""The maximum numbers of definitions and of workers that `apply` names in its text."""

AFTERWARDS = {
    "action": "Each keeps the options with which it started, and runs the code of the worker that takes it.",
    "workflow": "Each keeps the graph with which it started.",
}
"""The sentence about open executions of former versions, by kind."""

rules = typer.Typer(
    help="List, enable, disable, delete and test rules. List and repeat failed evaluations.",
    no_args_is_help=True,
)


def apply(
    source: Annotated[list[str], typer.Argument(help="Python files or modules, or folders of YAML packs.")],
    json: Json = False,
) -> None:
    """Register the definitions of modules and packs. Applying them twice changes nothing. The output names the open
    executions of former versions, and the live workers that keep their code."""
    with hidden_secrets():
        definitions = load_all(",".join(source))

    async def work(session: Session) -> tuple[list[Change], list[RouteUse], RunningWork]:
        changes = await register(session, definitions)
        named = [
            route for d in definitions.documents() for route, _ in routes.named_routes(d.kind, d.ref, d.body)
        ]
        settings = await find_installation()
        unserved = await routes.unserved(session, settings, named) if named else []
        return changes, unserved, await running_work(session, settings, changes)

    changes, unserved, running = with_session(work)
    if any(change.kind == "schedule" and change.what != "unchanged" for change in changes):
        wake_schedules()
    if json:
        for change in changes:
            line: dict[str, Any] = {"kind": change.kind, "ref": change.ref, "what": change.what}
            if change.kind in RUNS:
                line |= {"open_runs": running.open_runs(change), "workers": running.workers_of(change)}
            json_line(line)
        return
    changed = [(c.kind, c.ref, c.what) for c in changes if c.what != "unchanged"]
    if changed:
        table(["kind", "ref", "change"], changed)
    out.print(f"{len(changed)} of {len(changes)} definitions changed.")
    _tell_running(running)
    for use in unserved:
        warn(use)
    print_faults(likely_typos(definitions), err)


def _tell_running(running: RunningWork) -> None:
    """Print how executions of former versions go on, and which workers still have the code of those versions."""
    for runs in running.former[:SHOWN_FORMER]:
        out.print(
            f"{escape(runs.ref)}: {count(runs.open, 'execution')} of former versions"
            f" ({runs.running} running, {runs.open - runs.running} waiting). {AFTERWARDS[runs.kind]}"
        )
    if (unlisted := len(running.former) - SHOWN_FORMER) > 0:
        out.print(f"The same is true for {count(unlisted, 'more definition')}. --json lists all.")
    if workers := running.workers:
        names = ", ".join(worker.name for worker in workers[:SHOWN_WORKERS])
        names += ", ..." * (len(workers) > SHOWN_WORKERS)
        keep = (
            "still has the code with which it was started: restart it"
            if len(workers) == 1
            else "still have the code with which they were started: restart them"
        )
        subject = f"{count(len(workers), 'worker')} with these actions ({names})"
        out.print(escape(f"{subject} {keep} to run new code."))


def _listed(kinds: list[str], json: bool, *columns: str) -> None:
    _print(read(lambda client: client.definitions(kinds)), json, *columns)


def _print(rows: list[dict[str, Any]], json: bool, *columns: str) -> None:
    if any(row.get("held") for row in rows):
        columns = ("held", *columns)
    listing(
        ["ref", "enabled", *columns],
        rows,
        lambda row: (row["ref"], row["enabled"], *(_column(row, c) for c in columns)),
        json=json,
        empty="There are no definitions of this kind yet. Define some with `penstock apply FILE`.",
    )


def _column(row: dict[str, Any], column: str) -> str:
    if column in row:
        return _said(row[column])
    if column == "executor" and row["kind"] == "workflow":
        return "workflow"  # executors run workflows themselves
    if column == "trigger" and "window" in row["definition"]:
        return _of_window(row["definition"]["window"])
    return _said(row["definition"].get(column))


def _of_window(window: dict[str, Any]) -> str:
    """Return the pattern of a rule's window with its triggers."""
    pattern = next(name for name in PATTERNS if window.get(name))
    return f"{pattern}: {', '.join(part['trigger'] for part in window[pattern])}"


def _said(value: Any) -> str:
    if isinstance(value, str):
        return value.strip().split("\n", 1)[0]
    return "" if value is None else orjson.dumps(value).decode()


def actions(json: Json = False) -> None:
    """List actions and workflows."""
    _listed(["action", "workflow"], json, "executor", "description")


def triggers(json: Json = False) -> None:
    """List triggers."""
    _listed(["trigger"], json, "description")


@rules.command("list")
def list_rules(json: Json = False) -> None:
    """List rules, each with the number of events on which it failed."""
    _print(read(lambda client: client.rules.all()), json, "trigger", "when", "action", "errors")


Rule = Annotated[
    str, typer.Argument(help="The rule's ref, such as shop.charge_big.", autocompletion=name_completion.rules)
]


def _changed(ref: str, done: str, json: bool) -> None:
    if json:
        json_line({"rule": ref, "is": done})
    else:
        out.print(f"Rule {ref} is {done}.")


@rules.command()
def enable(ref: Rule, json: Json = False) -> None:
    """Enable a rule, so that it matches again."""
    read(lambda client: client.rules.enable(ref, True))
    _changed(ref, "enabled", json)


@rules.command()
def disable(ref: Rule, json: Json = False) -> None:
    """Disable a rule. It matches nothing until it is enabled again."""
    read(lambda client: client.rules.enable(ref, False))
    _changed(ref, "disabled", json)


@rules.command()
def delete(ref: Rule, json: Json = False) -> None:
    """Delete a rule. The executions that it started continue."""
    read(lambda client: client.rules.delete(ref))
    _changed(ref, "deleted", json)


@rules.command()
def test(
    event: Annotated[UUID, typer.Argument(parser=parse_id, help="An event.")], json: Json = False
) -> None:
    """Evaluate all rules of an event's trigger for the event, without starting anything: which match, and why others
    do not."""
    verdicts = with_session(lambda session: event_rules.tried(session, event))
    listing(
        ["rule", "verdict", "reason"],
        verdicts,
        lambda v: (v["rule"], v["verdict"], v["why"]),
        json=json,
        empty="No rule has the trigger of this event.",
    )


# Added here once, since a process may build the command line several times.
cli_rule_errors.add_to(rules)
cli_rule_replays.add_to(rules)


def add_to(app: typer.Typer) -> None:
    app.command()(apply)
    app.command()(actions)
    app.command()(triggers)
    app.add_typer(rules, name="rules")
