"""The command `penstock`. Users see the error and the fix, never a traceback."""

from __future__ import annotations

import sys

import typer

from penstock.cli import definitions, events, executions, operations, services
from penstock.cli.output import complain
from penstock.errors import PenstockError

app = typer.Typer(
    help="Penstock runs work when events happen and keeps its promises when machines die.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
for part in (services, definitions, events, executions, operations):
    part.add_to(app)


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 an error that is explained, 2 wrong usage, 130 interrupted."""
    try:
        app()
    except PenstockError as error:
        complain(error)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
