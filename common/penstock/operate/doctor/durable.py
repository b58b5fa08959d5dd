"""The check of open runs of durable functions that began with other code than is registered now."""

from __future__ import annotations

from penstock.operate.doctor.finding import Finding, ok, warning
from penstock.operate.why.answer import count
from penstock.store.durable import runs_by_code
from penstock.store.session.database import Session


async def findings(session: Session) -> list[Finding]:
    runs = await runs_by_code.open_runs(session)
    if not runs:
        return []
    other = [run for run in runs if run.digest != run.current]
    if not other:
        return [
            ok(
                "durable functions",
                f"{count(sum(r.count for r in runs), 'open run')}, and all of them began with the registered code",
            )
        ]
    text = "; ".join(f"{count(run.count, 'open run')} of {run.ref} began with other code" for run in other)
    return [
        warning(
            "durable functions",
            text,
            f"Check whether the new code fits: penstock replay {other[0].example} --against FILE.py. If it "
            "does not fit, the run fails at the first difference. ctx.version keeps old runs on the old "
            "code path.",
        )
    ]
