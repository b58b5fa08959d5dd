"""The command line in this process, as a person would type it."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from penstock.cli import main


@dataclass(frozen=True, slots=True)
class Said:
    """The output of a command, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def documents(self) -> list[Any]:
        """Return the documents that `--json` printed."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def document(self) -> Any:
        [one] = self.documents
        return one


async def penstock(*words: object) -> Said:
    """Run `penstock` with these words. In a thread, for it has an event loop of its own."""
    out, err = io.StringIO(), io.StringIO()

    def run() -> int:
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main([str(word) for word in words])
            except SystemExit as end:
                return int(end.code or 0)
        raise AssertionError("the command line always ends with SystemExit")

    code = await asyncio.to_thread(run)
    return Said(code, out.getvalue(), err.getvalue())
