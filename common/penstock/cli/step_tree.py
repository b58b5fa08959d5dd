"""The output of `show` for the recorded steps of a durable function's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from penstock.cli.output import age, out, span, table, table_with_notes
from penstock.operate.wait_clauses import SLEEP_END
from penstock.run.root_cause import headline

if TYPE_CHECKING:
    from penstock.operate.awaited_steps import StepWait
    from penstock.operate.durable_steps import Step


def print_steps(steps: Sequence[Step], state: Mapping[str, Any]) -> None:
    """Print the steps of a run as a tree of its branches, and its state."""
    from penstock.operate.durable_steps import TIMED_OUT, status_for_people

    ordered = sorted(steps, key=lambda step: (step.branch[:1], step.at))
    columns = ["step", "kind", "status", "attempts", "duration", "recorded", "execution"]
    cells = [
        (
            "│  " * len(step.branch)
            + ".".join(map(str, step.branch))
            + (" " if step.branch else "")
            + step.label.rpartition("/")[2],
            step.kind,
            status_for_people(step),
            step.tries if step.tries > 1 else "",
            span(timedelta(seconds=step.took)) if step.took else "",
            None if step.wait is not None else step.at,
            step.execution,
        )
        for step in ordered
    ]
    failures = [
        None if step.error is None or status_for_people(step) == TIMED_OUT else headline(step.error)
        for step in ordered
    ]
    notes = [
        failure or (step.wait and wait_text(step.wait))
        for failure, step in zip(failures, ordered, strict=True)
    ]
    if any(notes):
        words = [
            word
            for word, entries in (("error", failures), ("wait", [step.wait for step in ordered]))
            if any(entries)
        ]
        table_with_notes(" or ".join(words), columns, cells, notes)
    else:
        table(columns, cells)
    for key, value in state.items():
        out.print(f"[dim]{key}[/dim] {value}", highlight=False)


def wait_text(wait: StepWait) -> str:
    """Return what ends the wait of a step, since when the function waits, and until when."""
    until = "" if wait.until is None else f", until {wait.until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    waited = f"for {age(wait.since).removesuffix(' ago')}"
    if wait.awaits == SLEEP_END:
        return f"sleeping {waited}{until}"
    return f"waits for {wait.awaits} ({waited}{until})"
