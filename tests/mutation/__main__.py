"""`make mutate`: judges mutants and compares what survived with what is explained.

make mutate                                # all, which takes hours
make mutate ARGS="sql admission promote"   # functions of the database, by subject or name
make mutate ARGS="python engine.joins"     # Python that decides, by module
make mutate ARGS="measure tests/flows"     # which functions tests call: again, where tests were added
make mutate ARGS="compare"                 # nothing is run: what the verdicts say
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

from tests.mutation import python, verdicts
from tests.mutation.sql import measure, run
from tests.mutation.verdicts import KILLED, REFUSED, SURVIVED

WANTED = 0.95
"""Of the mutants of SQL, and of those of Python, so many have to be killed; each of the others is explained."""


def main(what: str = "", *only: str) -> None:
    if what == "measure":
        measure.measure(only)
        return
    parts: Sequence[str] = verdicts.parts()
    if what == "sql":
        parts = run.run(only)
    elif what == "python":
        parts = python.run(only)
    elif not what:
        parts = [*run.run(()), *python.run(())]
    elif what != "compare":
        sys.exit(__doc__)
    sys.exit(0 if compared(parts) else 1)


def compared(parts: Sequence[str]) -> bool:
    """Print the verdicts on the mutants of these parts, and the survivors without an explanation."""
    explained, fine = verdicts.explained(), True
    killed, all_of = Counter[str](), Counter[str]()
    for part in parts:
        found = verdicts.read(part)
        count = Counter(one.verdict for one in found.values())
        asked = count[KILLED] + count[SURVIVED]
        language = part.partition(".")[0]
        killed[language] += count[KILLED]
        all_of[language] += asked
        print(
            f"{part}: {count[KILLED]} of {asked} killed ({count[KILLED] / max(asked, 1):.1%}),"
            f" {count[REFUSED]} were none,"
            f" {sum(one.verdict == SURVIVED and name in explained for name, one in found.items())} survivors are explained"
        )
        for name, one in found.items():
            if one.verdict == SURVIVED and name not in explained:
                fine = False
                print(f"  survived: {name} ({one.by or 'all tests were run'})")
            elif one.verdict != SURVIVED and name in explained:
                fine = False
                print(f"  explained, and yet {one.verdict}: {name}")
    for language, asked in all_of.items():
        print(
            f"{language}: {killed[language]} of {asked} killed ({killed[language] / max(asked, 1):.1%}); wanted {WANTED:.0%}"
        )
        fine &= killed[language] >= WANTED * asked
    return fine


if __name__ == "__main__":
    main(*sys.argv[1:])
