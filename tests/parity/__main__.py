"""`make parity`: try every row, or those that are named, and print a line a row. Exit code: how many are red."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from tests.parity.host import Host
from tests.parity.rows import ROWS, Row

SECONDS = 400
"""That a row may take before it is called red."""
AT_ONCE = 10
"""Rows that run side by side; most of them wait most of the time."""
out = Console(soft_wrap=True, highlight=False)


async def tried(row: Row, host: Host, turn: asyncio.Semaphore) -> tuple[Row, bool, str, float]:
    async with turn:
        began = time.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                green, report = True, await row.run(host)
        except TimeoutError:
            green, report = False, f"nothing after {SECONDS} s"
        except AssertionError as wrong:
            green, report = False, str(wrong)
        except Exception as fault:
            green, report = False, f"{type(fault).__name__}: {fault}"
        return row, green, " ".join(report.split()), time.monotonic() - began


def line(row: Row, green: bool, said: str, seconds: float) -> str:
    mark = "[green]ok [/green]" if green else "[red]red[/red]"
    text = said.replace("[", r"\[")
    return f"{row.name:<4}{mark}  {text}  [dim]({seconds:.0f} s)[/dim]"


async def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in {row.name for row in ROWS}]
    if unknown:
        out.print(f"There is no row {', '.join(unknown)}. There are: {', '.join(row.name for row in ROWS)}.")
        return 2
    selected = [row for row in ROWS if not names or row.name in names]
    with tempfile.TemporaryDirectory(prefix="penstock-parity-") as folder:
        async with Host(Path(folder)) as host:
            turn = asyncio.Semaphore(AT_ONCE)
            order = sorted(selected, key=lambda row: not row.long)
            results = await asyncio.gather(*(tried(row, host, turn) for row in order))
    for result in sorted(results, key=lambda result: selected.index(result[0])):
        out.print(line(*result))
    red = [row.name for row, green, _, _ in results if not green]
    out.print(f"{len(results) - len(red)} of {len(results)} rows are green.")
    return len(red)


if __name__ == "__main__":
    began = time.monotonic()
    code = asyncio.run(main([name.upper() for name in sys.argv[1:]]))
    out.print(f"[dim]{time.monotonic() - began:.0f} s[/dim]")
    sys.exit(code)
