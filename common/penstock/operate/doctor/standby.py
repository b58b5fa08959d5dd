"""The check of the standby that the API reads from."""

from __future__ import annotations

from penstock.operate.doctor.finding import Finding, ok, warning
from penstock.settings import Settings
from penstock.store.session.standby import Standby


async def findings(settings: Settings) -> list[Finding]:
    """Return a finding about the standby; none if the settings name no standby."""
    if settings.database_read_url is None:
        return []
    standby = Standby(settings, role="doctor")
    try:
        if await standby.is_near():
            return [
                ok("standby", f"lists are read from the standby, and are at most {standby.behind:.1f} s old")
            ]
    finally:
        await standby.close()
    return [
        warning(
            "standby",
            f"the standby is not used: {standby.why}",
            "Until then, lists are read from the primary. Start the standby, or correct PENSTOCK_DATABASE_READ_URL.",
        )
    ]
