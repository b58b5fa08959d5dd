"""The check for policies of the broker that end messages. AMQP shows no policies, but dead letters do."""

from __future__ import annotations

from datetime import timedelta

from penstock.operate.doctor.finding import Finding, warning
from penstock.operate.why.answer import span
from penstock.settings import Settings
from penstock.store.outbox import dead_letters, queues
from penstock.store.session import clock
from penstock.store.session.database import Session

LATELY = timedelta(days=1)


async def findings(session: Session, settings: Settings) -> list[Finding]:
    """Return a warning for each queue on which a policy has ended messages within a day."""
    now, results = await clock.now(session), []
    for letters in await dead_letters.counts(session, dead_letters.LetterFilter()):
        policy = dead_letters.OF_POLICIES.get(letters.reason.partition(";")[0])
        if policy is None or now - letters.last_at > LATELY or not queues.is_consumed(letters.queue):
            continue  # any program can send a letter with a queue that Penstock does not have
        last = span(max(0.0, (now - letters.last_at).total_seconds()))
        results.append(
            warning(
                f"policy on {letters.queue}",
                f"a policy of the broker ({policy}) has ended {letters.deliveries} messages there, the last {last} ago",
                "Find the policy with `rabbitmqctl list_policies -p VHOST` (and list_operator_policies), "
                f"and exclude queues that begin with {settings.prefix} from {policy}. Until then, Penstock "
                "publishes these messages again, with growing delays.",
            )
        )
    return results
