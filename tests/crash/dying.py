"""An executor that ends itself with SIGKILL right before or right after it commits something about a workflow for the n-th
time: `python -m tests.crash.dying before 3 executor`."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from penstock.cli import main
from penstock.database import Row, Transaction


def doom(when: str, number: int) -> None:
    """Let this process die so."""
    left = number
    about_workflows: set[int] = set()
    fetch, commit = Transaction.fetch, Transaction.commit

    async def noting(self: Transaction, sql: str, *args: Any) -> list[Row]:
        if "workflow" in sql:
            about_workflows.add(id(self))
        return await fetch(self, sql, *args)

    async def dying(self: Transaction) -> None:
        nonlocal left
        if id(self) in about_workflows:
            about_workflows.discard(id(self))
            left -= 1
            if not left and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            await commit(self)
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
        else:
            await commit(self)

    Transaction.fetch = noting  # type: ignore[method-assign]
    Transaction.commit = dying  # type: ignore[method-assign]


if __name__ == "__main__":
    doom(sys.argv[1], int(sys.argv[2]))
    main(sys.argv[3:])
