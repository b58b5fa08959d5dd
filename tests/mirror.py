"""The share of product modules whose test is found by their name, and its limit.

The test of `common/penstock/store/outbox/queues.py` is `tests/penstock/store/outbox/test_queues.py`. `make check` fails when the
share is below `tests/mirror_limit.toml`. `python -m tests.mirror raise` writes the share of today there; it refuses to lower
the limit. `python -m tests.mirror` prints the share, and the modules without a test of their name.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

LIMIT = Path(__file__).with_name("mirror_limit.toml")
PRODUCT = ("common", "services", "extras/penstock-dask", "extras/penstock-import", "extras/penstock-ray")


def modules(root: Path) -> dict[str, bool]:
    """Return, for each product module, whether it has a test of its name."""
    return {
        path.relative_to(root).as_posix(): expected_test(root, path.relative_to(root / part)).exists()
        for part in PRODUCT
        for path in sorted((root / part).rglob("*.py"))
        if path.name not in ("__init__.py", "setup.py")
    }


def expected_test(root: Path, module: Path) -> Path:
    """Return the path of the test of a module, whose own path begins with its package."""
    return root / "tests" / module.parent / f"test_{module.name}"


def percent(root: Path) -> int:
    """Return the share of modules with a test of their name, in whole percents."""
    tested = modules(root)
    return 100 * sum(tested.values()) // max(1, len(tested))


def broken_limit(root: Path) -> Iterator[str]:
    """Yield a sentence if the share is below its limit."""
    share, least = percent(root), _limit()
    if share < least:
        yield (
            f"{LIMIT.name}: {share} % of the modules have a test of their name, and at least {least} % must. "
            "Name the test of a new module after it, in the folder of the same path below tests/."
        )


def _limit() -> int:
    return int(tomllib.loads(LIMIT.read_text())["percent"])


def _raise(root: Path) -> None:
    head = "".join(line for line in LIMIT.read_text().splitlines(keepends=True) if line.startswith("#"))
    LIMIT.write_text(f"{head}percent = {max(percent(root), _limit())}\n")


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parents[1]
    match arguments:
        case []:
            tested = modules(root)
            print(*(module for module, has_test in tested.items() if not has_test), sep="\n")
            print(f"{sum(tested.values())} of {len(tested)} modules have a test of their name.")
        case ["raise"]:
            _raise(root)
        case _:
            print("usage: python -m tests.mirror [raise]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
