"""The check that live processes have the master keys under which secrets are, and the newest one."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import PenstockError
from penstock.operate.doctor.finding import Finding, bad, ok, warning
from penstock.settings import Settings
from penstock.store.access import secrets
from penstock.store.processes import key_holders
from penstock.store.processes.key_holders import KeyHolder, titles
from penstock.store.session.database import Session
from penstock.store.session.master_keys import held_keys


async def findings(session: Session, settings: Settings) -> list[Finding]:
    """Check the keys of live processes against those of this command and of the rows. There is no finding without a
    master key and without secrets."""
    try:
        in_use = [use.master_key for use in await secrets.keys_in_use(session)]
    except PenstockError:  # an account of a service cannot read secrets
        in_use = []
    held = held_keys(settings)
    if not held and not in_use:
        return []
    holders = await key_holders.live(session, settings.stale_threshold)
    return [
        *[_missing(key, lacking) for key in in_use if (lacking := _unable(holders, key))],
        *([_newest(held[0], lacking)] if held and (lacking := _lacking(holders, held[0])) else []),
    ] or [ok("master keys", "every service with a master key has all keys that are in use")]


def _unable(holders: Sequence[KeyHolder], key: str) -> list[KeyHolder]:
    return [holder for holder in holders if holder.cannot_open(key)]


def _lacking(holders: Sequence[KeyHolder], key: str) -> list[KeyHolder]:
    return [holder for holder in holders if holder.lacks(key)]


def _missing(key: str, lacking: Sequence[KeyHolder]) -> Finding:
    return bad(
        "master keys",
        f"secrets are encrypted with the key {key}, which these services lack: {titles(lacking)}",
        "Restart these services with this key among their master keys. Or run `penstock secrets rotate`, "
        "so that the key is no longer needed.",
    )


def _newest(key: str, lacking: Sequence[KeyHolder]) -> Finding:
    return warning(
        "master keys",
        f"these services lack the newest key of this command, {key}: {titles(lacking)}",
        "Restart these services with this key among their master keys, before you run `penstock secrets "
        "rotate` or set a secret.",
    )
