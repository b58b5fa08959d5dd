"""The planting of all faults, or of those with the given words. It prints the table that docs/guarantees.md keeps."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.chaos.mutations import faults, found


def main(words: str) -> None:
    missed = 0
    for fault in faults():
        if words in fault.what:
            with tempfile.TemporaryDirectory() as folder:
                caught = found(fault, Path(folder))
            missed += not caught
            print(
                f"| {fault.what} | {fault.breaks} | `{fault.test}` | {'found' if caught else '**missed**'} |",
                flush=True,
            )
    sys.exit(missed)


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]))
