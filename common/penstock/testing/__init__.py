"""The testing tools for users of Penstock. `Simulation` runs actions and workflows in this process, with its own clock
and without servers (docs/testing.md). `crash_everywhere` crashes a durable function at each of its records
(docs/durable.md). `executor_conformance` tests task executors (docs/task-executors.md).

Not here: production code. A simulation uses the same engine and the same retry rules, but no database.
"""

from __future__ import annotations

from penstock.language.rules.trial import Played, PlayedMatch, evaluate, play, try_rule
from penstock.testing.crash_everywhere import crash_everywhere
from penstock.testing.durable_requests import StartedExecution
from penstock.testing.durable_run import DurableRun
from penstock.testing.simulated_http import SentRequest
from penstock.testing.simulated_run import SimulatedRun
from penstock.testing.simulated_webhooks import WebhookResponse
from penstock.testing.simulation import Simulation
from penstock.testing.steps import Step
from penstock.testing.world import PublishedEvent, RuleFailure

__all__ = [
    "DurableRun",
    "Played",
    "PlayedMatch",
    "PublishedEvent",
    "RuleFailure",
    "SentRequest",
    "SimulatedRun",
    "Simulation",
    "StartedExecution",
    "Step",
    "WebhookResponse",
    "crash_everywhere",
    "evaluate",
    "play",
    "try_rule",
]
