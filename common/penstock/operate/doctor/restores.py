"""The checks of rows that a restore has left out, and of sequences that it has left behind."""

from __future__ import annotations

from penstock.operate.doctor.finding import Finding, bad, ok
from penstock.operate.why.answer import count
from penstock.store.schema import sequences
from penstock.store.session.database import Session
from penstock.store.upkeep import incomplete


async def findings(session: Session) -> list[Finding]:
    return [await _definitions(session), await _sequences(session)]


async def _definitions(session: Session) -> Finding:
    unknown = await incomplete.without_definition(session)
    if not unknown.executions and not unknown.current:
        return ok("restored rows", "each execution and each current definition has its stored version")
    return bad(
        "restored rows",
        f"the database lacks the stored versions of {count(unknown.executions, 'execution')} and "
        f"{count(unknown.current, 'current definition')}: only a part of a dump was loaded, so these executions cannot run",
        "Stop all services, restore the whole dump into an empty database, and run `penstock migrate`. Do not load only the "
        "data into migrated tables.",
    )


async def _sequences(session: Session) -> Finding:
    behind = await sequences.behind(session.fetch)
    if not behind:
        return ok("sequences", "no sequence is behind the rows that it numbers")
    return bad(
        "sequences",
        f"behind the rows that they number, so new rows are refused: {', '.join(behind)}",
        "Run `penstock migrate` as the owner of the schema: it advances them.",
    )
