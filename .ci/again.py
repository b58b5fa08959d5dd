"""Runs the tests that failed in a part of the tests again, alone and three times each. Fails unless all pass.

python .ci/again.py test

A few of 8,000 tests wait for real servers, and a busy machine can make one of them too late. Tests of races, crashes and chaos
are never run again: what fails there once in many runs is what they look for. See docs/decisions/0054.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

AT_MOST = 3
TIMES = 3
NEVER = ("tests/interleavings", "tests/crash", "tests/chaos", "tests/mutation", "tests/durable_programs")


def failed(part: str) -> list[str]:
    """Return the failed tests as pytest names them. Raises SystemExit where the part did not run to its end."""
    if not Path(f".test-results/{part}.xml").exists():
        sys.exit(f"make {part} did not run to its end.")
    return list(json.loads(Path(".pytest_cache/v/cache/lastfailed").read_text()))


def main() -> None:
    part = sys.argv[1]
    tests = failed(part)
    if not 0 < len(tests) <= AT_MOST:
        sys.exit(f"{len(tests)} tests of make {part} failed; up to {AT_MOST} are run again.")
    if once := [test for test in tests if test.startswith(NEVER)]:
        sys.exit(f"Not run again, since a fault there may be rare: {' '.join(once)}")
    for _ in range(TIMES):
        subprocess.run([sys.executable, "-m", "pytest", *tests], check=True)
    print(f"== UNSTABLE: failed once, and passed {TIMES} times alone: {' '.join(tests)}")


main()
