"""The testing tools for users of Penstock: `Simulation` runs actions and workflows in this process, with a clock of
its own and without servers (docs/testing.md); `crash_everywhere` crashes a durable function at each of its records
(docs/durable.md); `executor_conformance` tests task executors (docs/task-executors.md).

Not here: what runs in production. A simulation stands on the same engine and the same rules of retries, and on no database.
"""

from __future__ import annotations

from penstock.language.rules.trial import evaluate, try_rule
from penstock.testing.crash_everywhere import crash_everywhere
from penstock.testing.durable_run import DurableRun
from penstock.testing.simulated_run import SimulatedRun
from penstock.testing.simulation import Simulation
from penstock.testing.steps import Step

__all__ = ["DurableRun", "SimulatedRun", "Simulation", "Step", "crash_everywhere", "evaluate", "try_rule"]
