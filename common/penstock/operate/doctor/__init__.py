"""What is wrong with an installation, and what to do about it. `penstock doctor` prints it."""

from __future__ import annotations

from penstock.operate.doctor import broker, installation, postgres, software
from penstock.operate.doctor.finding import Finding
from penstock.settings import Settings

__all__ = ["Finding", "examine"]


async def examine(settings: Settings) -> list[Finding]:
    """Look at everything that can be looked at. What cannot be reached is a finding, never an error."""
    found = [*software.findings()]
    connection, reached = await postgres.reach(settings)
    found += reached
    if connection is not None:
        try:
            found += await postgres.findings(connection, settings)
            found += await installation.findings(connection, settings)
        finally:
            await connection.close(timeout=2)
    return found + await broker.findings(settings)
