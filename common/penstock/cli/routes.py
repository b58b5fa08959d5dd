"""The commands `penstock routes`: the queue of each kind of work, its workers, and the reason."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.markup import escape

from penstock.cli import name_completion
from penstock.cli.command_runner import with_session
from penstock.cli.output import Json, err, json_line, out, table
from penstock.client.installation import find_installation
from penstock.language.terms.routing import RoutingRule
from penstock.operate import routes
from penstock.operate.routes import RouteUse
from penstock.operate.why.answer import count
from penstock.store.admission.namespaces import RouteChoice
from penstock.store.session.database import Session

commands = typer.Typer(help="List and explain routes; remove routing rules.", no_args_is_help=True)


@commands.command("list")
def list_(json: Json = False) -> None:
    """List the routing rules in the order in which they are tried, and the routes, with what names them and the number
    of workers."""

    async def work(session: Session) -> tuple[list[RoutingRule], list[RouteUse]]:
        return await routes.rules(session), await routes.table(session, await find_installation())

    rules, uses = with_session(work)
    if json:
        for rule in rules:
            json_line({"kind": "rule", **asdict(rule)})
        for use in uses:
            json_line({"kind": "route", **asdict(use), "amiss": use.amiss})
        return
    if rules:
        table(["pattern, the first that fits", "goes to"], [(rule.pattern, rule.route) for rule in rules])
        out.print()
    table(["route", "workers", "used by", ""], [(u.route, u.workers, u.named_by, u.meant) for u in uses])
    for use in uses:
        if use.amiss:
            warn(use)


def warn(use: RouteUse) -> None:
    """Print a warning about a route on standard error, if something is wrong with it."""
    says = (
        f"no definition names the route {use.route}, which is served by {count(use.workers, 'worker')}."
        if use.workers
        else f"no live worker serves the route {use.route}"
        + (f" ({', '.join(use.named_by[:3])})." if use.named_by else ".")
    )
    hint = use.meant or f"Start one: penstock worker --module FILE --routes {use.route}" * (not use.workers)
    err.print(f"[yellow]warning:[/yellow] {escape(f'{says} {hint}'.strip())}")


@commands.command()
def explain(
    what: Annotated[
        str,
        typer.Argument(
            help="An action, such as ml.train, or a namespace: public::ml::nightly::train.",
            autocompletion=name_completion.actions,
        ),
    ],
    json: Json = False,
) -> None:
    """Show which route an action or namespace takes, which rule decides that, and why earlier rules do not match."""

    async def work(session: Session) -> tuple[str, RouteChoice, int]:
        namespace, choice = await routes.explain(session, what)
        uses = await routes.table(session, await find_installation())
        return namespace, choice, sum(use.workers for use in uses if use.route == choice.route)

    namespace, choice, workers = with_session(work)
    if json:
        rule = choice.rules.rule
        json_line(
            {
                "namespace": namespace,
                "route": choice.route,
                "named": choice.named is not None,
                "rule": None if choice.named or rule is None else rule.pattern,
                "passed_over": [
                    {"pattern": skipped.rule.pattern, "route": skipped.rule.route, "why": skipped.reason}
                    for skipped in choice.rules.passed_over
                ],
                "workers": workers,
            }
        )
        return
    if choice.named:
        says = f"{namespace} -> {choice.named} (the task or the action names this route, so no routing rule is used)"
    else:
        says = str(choice.rules)
    out.print(says, markup=False, highlight=False)
    out.print(f"Workers that serve {choice.route}: {workers}.", highlight=False)


@commands.command()
def remove(
    pattern: Annotated[
        str,
        typer.Argument(
            help="The pattern of the rule, as `penstock routes list` shows it.",
            autocompletion=name_completion.route_patterns,
        ),
    ],
    json: Json = False,
) -> None:
    """Remove a routing rule. Its work then follows the next rule that matches."""
    with_session(lambda session: routes.remove(session, pattern))
    if json:
        json_line({"pattern": pattern, "is": "removed"})
    else:
        out.print(
            f"The rule {pattern} is removed. If you apply a module or pack that declares it, it is created again.",
            markup=False,
        )


def add_to(app: typer.Typer) -> None:
    app.add_typer(commands, name="routes")
