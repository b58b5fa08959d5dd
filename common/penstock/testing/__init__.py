"""For the tests of those who build on Penstock: `Simulation` runs actions and workflows in this process, with a clock of its
own and without servers (docs/testing.md); `executor_conformance` tests task executors (docs/task-executors.md).

Not here: what runs in production. A simulation stands on the same engine and the same rules of retries, and on no database.
"""

from __future__ import annotations

from penstock.testing.expressions import evaluate, try_rule
from penstock.testing.simulated_run import SimulatedRun
from penstock.testing.simulation import Simulation
from penstock.testing.steps import Step

__all__ = ["SimulatedRun", "Simulation", "Step", "evaluate", "try_rule"]
