"""The verdict on each mutant, in files of the tree, and the survivors that are explained."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

HOME = Path(__file__).parent
REFUSED, KILLED, SURVIVED = "refused", "killed", "survived"


@dataclass(frozen=True)
class Verdict:
    """`refused`: PostgreSQL does not take it, at once or where it runs: no mutant. `by`: the test that failed."""

    verdict: str
    by: str = ""


def read(part: str) -> dict[str, Verdict]:
    """By the names of the mutants."""
    file = HOME / "verdicts" / f"{part}.tsv"
    if not file.exists():
        return {}
    lines = (line.split("\t") for line in file.read_text().splitlines())
    return {name: Verdict(verdict, by) for verdict, name, by in lines}


def write(part: str, verdicts: Mapping[str, Verdict]) -> None:
    file = HOME / "verdicts" / f"{part}.tsv"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        "".join(f"{verdict.verdict}\t{name}\t{verdict.by}\n" for name, verdict in verdicts.items())
    )


def parts() -> list[str]:
    return sorted(file.stem for file in (HOME / "verdicts").glob("*.tsv"))


def explained() -> dict[str, str]:
    """Return the reasons for which nothing can tell these mutants from their originals, or no test should."""
    survivors: Mapping[str, Iterable[Mapping[str, str]]] = tomllib.loads(
        (HOME / "survivors.toml").read_text()
    )
    return {survivor["mutant"]: survivor["why"] for survivor in survivors.get("survivor", ())}
