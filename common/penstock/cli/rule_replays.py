"""The command `penstock rules replay`: stored events that a rule sees again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from penstock.cli import execution_filter as of
from penstock.cli import name_completion
from penstock.cli.output import Json, json_line, out, table
from penstock.cli.server import by_either, now
from penstock.client.rule_replays import ReplayedEvent

if TYPE_CHECKING:
    from penstock.cli.server import AnyClient

WORDS = {
    "started": "started",
    "would start": "would start",
    "existing": "started before",
    "failed": "failed",
    "no match": "no match",
    "left": "not yet evaluated by an executor",
}


def replay(
    ref: Annotated[
        str,
        typer.Argument(help="The rule's ref, such as shop.charge_big.", autocompletion=name_completion.rules),
    ],
    since: Annotated[
        str,
        typer.Option(help="Only events stored since this instant: 2030-01-31T09:00, or 1h for an hour ago."),
    ],
    until: of.EventUntil = None,
    tenant: of.EventTenant = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Start nothing, and print the parameters.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="The maximum number of outcomes to list.")
    ] = 20,
    json: Json = False,
) -> None:
    """Evaluate a rule for stored events. The rule starts one execution for each matching event for which it has not
    started one before. Exit code 1 if the evaluation fails for an event."""
    first, last = of.instant("--since", since), of.instant("--until", until) or now()
    assert first is not None

    async def work(client: AnyClient) -> tuple[Counter[str], list[ReplayedEvent]]:
        counts: Counter[str] = Counter()
        listed: list[ReplayedEvent] = []
        cursor = None
        while True:
            page = await client.replay_rule(
                ref, since=first, until=last, tenant=tenant, dry_run=dry_run, cursor=cursor
            )
            counts.update(item.outcome for item in page.items)
            listed += [item for item in page.items if item.outcome != "no match"][: limit - len(listed)]
            if (cursor := page.next) is None:
                return counts, listed

    counts, listed = by_either(work)
    if json:
        for item in listed:
            json_line(item)
        json_line({"rule": ref, "dry_run": dry_run, "counts": counts})
    else:
        _print(counts, listed)
    if counts["failed"]:
        raise typer.Exit(1)


def _print(counts: Counter[str], listed: list[ReplayedEvent]) -> None:
    table(
        ["event", "tenant", "", "execution", "parameters or error"],
        [
            (
                item.event_id,
                item.tenant,
                WORDS[item.outcome],
                item.execution_id,
                item.error or (None if item.params is None else orjson.dumps(item.params).decode()),
            )
            for item in listed
        ],
        empty="No event matches this filter.",
    )
    total = sum(counts.values())
    events = "1 event" if total == 1 else f"{total:,} events"
    parts = [f"{counts[outcome]:,} {word}" for outcome, word in WORDS.items() if counts[outcome]]
    out.print(": ".join(filter(None, [events, ", ".join(parts)])))
    if counts["failed"]:
        out.print("[dim]Correct the rule and apply it, then run: penstock rules rerun RULE[/dim]")


def add_to(rules: typer.Typer) -> None:
    rules.command()(replay)
