"""Runs durable functions in a test, without servers: time is moved on, and the run is crashed wherever it records something.

from penstock import crash_everywhere

@crash_everywhere
async def test_an_order_is_paid_once(run):
    assert await run(order, id=7) == "shipped"
"""

from penstock.language.testing.crash_everywhere import crash_everywhere
from penstock.language.testing.durable_run import DurableRun

__all__ = ["DurableRun", "crash_everywhere"]
