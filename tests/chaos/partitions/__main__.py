"""Parts every two parts of a whole installation under load, and settles the accounts. Exit code 1: a promise was broken.

    python -m tests.chaos.partitions                                # each partition once, 120 a second
    python -m tests.chaos.partitions --seconds 1800 --rate 200 --seed 7
    python -m tests.chaos.partitions --only PgBouncer               # those whose name has this word

Three RabbitMQ nodes, a PostgreSQL with a synchronous standby behind a PgBouncer in transaction mode, two executors, two
workers and a client, each with ways of its own. A partition lasts 2 to 15 seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import random
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import structlog

from tests.chaos.partitions.run import HOWS, LASTS, partitions


def main() -> bool:
    """Return true if every promise was kept."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=0.0, help="at least; each partition is had once")
    parser.add_argument("--rate", type=float, default=120.0, help="of what is submitted, a second (120)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--only", nargs="+", default=(), help="partitions whose name has one of these words")
    parser.add_argument("--lasts", type=float, nargs=2, default=LASTS, metavar=("FROM", "TO"), help="seconds")
    hows = sorted(set(HOWS))
    parser.add_argument("--hows", nargs="+", choices=hows, default=HOWS, metavar="HOW", help=", ".join(hows))
    arguments = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable()
    folder = Path(tempfile.mkdtemp(prefix="penstock-partitions-"))
    log = folder / "services.log"
    print(f"seed {arguments.seed}; log of the services, kept if a promise is broken: {log}")
    run = asyncio.run(partitions(log, **vars(arguments), tell=partial(print, flush=True)))
    print(f"\n{run.text}\n\n" + "\n".join(run.broken or ["Every promise was kept."]))
    if not run.broken:
        shutil.rmtree(folder)
    return not run.broken


if __name__ == "__main__":
    sys.exit(not main())
