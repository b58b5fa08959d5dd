"""The file of results that `--jsonl` names: one line about the run, and one line for each figure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from bench.figures import Figure
from bench.machine import Ran


def write(ran: Ran, figures: Iterable[Figure], path: Path) -> None:
    lines = [{"run": asdict(ran)}, *(figure.line() for figure in figures)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def read(path: Path) -> tuple[Ran, list[Figure]]:
    first, *figures = (json.loads(line) for line in path.read_text().splitlines())
    return Ran(**first["run"]), [Figure(**line) for line in figures]
