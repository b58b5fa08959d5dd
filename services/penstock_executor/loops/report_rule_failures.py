"""The loop that logs the rules that have failed on events since the last turn of the loop: once a minute, not once an
event."""

from __future__ import annotations

import structlog

from penstock.service.assembly import Parts
from penstock.store.session.database import Session
from penstock_executor.loop_runner import Loop
from penstock_executor.rule_failures import tally

log = structlog.get_logger()


async def turn(parts: Parts, session: Session) -> bool:
    failed = tally(parts.database).tell()
    if failed:
        log.warning(
            "rules.failed",
            events=failed,
            hint="`penstock rules errors` shows the reasons. After the correction, run `penstock rules rerun`.",
        )
    return False


LOOP = Loop("report_rule_failures", lambda settings: 60.0, turn)
