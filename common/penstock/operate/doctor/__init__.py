"""The faults of an installation, and their remedies. `penstock doctor` prints them."""

from __future__ import annotations

from penstock.operate.doctor import broker, installation, postgres, roles, software, standby
from penstock.operate.doctor.finding import Finding
from penstock.settings import Settings

__all__ = ["Finding", "examine"]


async def examine(settings: Settings, *, is_embedded: bool = False) -> list[Finding]:
    """Run all checks. A server that cannot be reached is a finding, never an error. The embedded server (`is_embedded`) has
    one role, so the roles of services are not checked."""
    findings = [*software.findings()]
    database, reached = await postgres.reach(settings)
    served: list[str] = []
    is_executor_alive = False
    findings.append(reached)
    if database is not None:
        session = database.session()
        try:
            findings += await postgres.findings(session)
            findings += await installation.findings(session, settings)
            if not is_embedded and await installation.is_migrated(session):
                findings += await roles.findings(session)
            served = await installation.served_queues(session, settings)
            is_executor_alive = await installation.is_executor_alive(session, settings)
        finally:
            await database.close()
    findings += await standby.findings(settings)
    return findings + await broker.findings(settings, served, is_executor_alive=is_executor_alive)
