"""The output of `show` for the recorded steps of a durable function's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from penstock.cli.output import out, span, table, table_with_notes
from penstock.run.root_cause import headline

if TYPE_CHECKING:
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
            step.at,
            step.execution,
        )
        for step in ordered
    ]
    failures = [
        None if step.error is None or status_for_people(step) == TIMED_OUT else headline(step.error)
        for step in ordered
    ]
    if any(failures):
        table_with_notes("error", columns, cells, failures)
    else:
        table(columns, cells)
    for key, value in state.items():
        out.print(f"[dim]{key}[/dim] {value}", highlight=False)
