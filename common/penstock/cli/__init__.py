"""The command `penstock`. Users see the error and the fix, never a traceback."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

import typer

from penstock.cli import (
    dead_letters,
    definitions,
    demo,
    doctor,
    events,
    executions,
    inquiries,
    operations,
    schedules,
    services,
    starting,
    workflows,
)
from penstock.cli.failures import explained
from penstock.cli.output import complain

app = typer.Typer(
    help="Penstock runs work when events happen and keeps its promises when machines die.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for part in (
    services,
    demo,
    definitions,
    schedules,
    events,
    starting,
    executions,
    inquiries,
    operations,
    dead_letters,
    doctor,
    workflows,
):
    part.add_to(app)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command line, of this process by default. Always ends with SystemExit; exit codes: 0 done, 1 an error
    that is explained, 2 wrong usage, 130 interrupted."""
    try:
        app(None if words is None else list(words))
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Whoever read what we print has seen enough, as `head` does. Python would complain once more at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:
        if os.environ.get("PENSTOCK_LOG_LEVEL", "").lower() == "debug":
            traceback.print_exc()
        complain(explained(error))
        sys.exit(1)
