"""The checks of workers that call a gateway: the versions of their libraries, and the tokens that they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from importlib.metadata import version

from penstock.errors import PenstockError
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.operate.workers import is_outdated
from penstock.settings import Settings
from penstock.store.processes import remote_workers
from penstock.store.processes.remote_workers import LiveRemoteWorker
from penstock.store.session import clock
from penstock.store.session.database import Session

EXPIRES_WITHIN = timedelta(days=7)
"""The time before the expiry of a worker's token at which doctor warns."""
SHOWN = 5


async def findings(session: Session, settings: Settings) -> list[Finding]:
    try:
        workers = await remote_workers.live(session, settings.stale_threshold)
    except PenstockError as error:  # the account of an executor cannot read tokens
        return [
            warning(
                "remote workers",
                f"the database does not let this role read them: {error.message}",
                "Run this command as the schema's owner.",
            )
        ]
    if not workers:
        return []
    return [libraries(workers), *tokens(workers, await clock.now(session))]


def libraries(workers: Sequence[LiveRemoteWorker]) -> Finding:
    """Check that no worker has a library of Penstock that is older than this version."""
    outdated = [worker for worker in workers if is_outdated(worker.sdk)]
    if not outdated:
        languages = sorted({worker.language for worker in workers})
        return ok("remote workers", f"{len(workers)} alive ({', '.join(languages)})")
    named = ", ".join(f"{worker.name} ({worker.language}, {worker.sdk})" for worker in outdated[:SHOWN])
    suffix = f" and {len(outdated) - SHOWN} more" if len(outdated) > SHOWN else ""
    return warning(
        "remote workers",
        f"{len(outdated)} of {len(workers)} have a library older than {version('penstock')}: {named}{suffix}",
        "Update penstock or penstock-sdk on the machines of these workers, and restart them. Until then "
        "they go on working.",
    )


def tokens(workers: Sequence[LiveRemoteWorker], now: datetime) -> list[Finding]:
    """Check that the tokens of live workers exist, and that none expires soon."""
    by_token: dict[str, list[LiveRemoteWorker]] = {}
    for worker in workers:
        if worker.token_name is not None:
            by_token.setdefault(worker.token_name, []).append(worker)
    return [
        finding for name, holders in by_token.items() if (finding := _token(name, holders, now)) is not None
    ]


def _token(name: str, workers: Sequence[LiveRemoteWorker], now: datetime) -> Finding | None:
    subject = f"token {name}"
    named = ", ".join(worker.name for worker in workers[:SHOWN])
    holders = f"{named} and {len(workers) - SHOWN} more" if len(workers) > SHOWN else named
    set_it = "and set PENSTOCK_TOKEN of the workers to its secret."
    if not workers[0].has_token:
        return bad(
            subject,
            f"the token was revoked, so gateways refuse the workers {holders}",
            f"Create one with `penstock tokens create {name} --scope work`, {set_it}",
        )
    expires_at = workers[0].expires_at
    rotate = f"Rotate it with `penstock tokens rotate {name}`, {set_it}"
    if expires_at is None or expires_at > now + EXPIRES_WITHIN:
        return None
    if expires_at <= now:
        return bad(subject, f"the token has expired, so gateways refuse the workers {holders}", rotate)
    return warning(
        subject,
        f"the token expires at {expires_at:%Y-%m-%d %H:%M} UTC. From then on, gateways refuse the workers {holders}",
        rotate,
    )
