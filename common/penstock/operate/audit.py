"""The audit: the recorded details of changes, and the proof that no row was edited."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import orjson

from penstock.errors import InvalidInput
from penstock.run.cut_texts import cut_end
from penstock.store.access import audit
from penstock.store.access.audit import AuditedChange, Chain
from penstock.store.session import audited_change
from penstock.store.session.database import Session

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST = hashlib.sha256(b"penstock audit").digest()
"""The seal before the first row."""

_KEPT = """
action against ahead all amount apply asked at at_most at_once before budget burst by catch_up children chosen cost cron cursor
debounce debounce_key delay description disabled dry_run enabled ends_at event every expires fair filters first for_ force
from_failed from_task grace header id ids in_ jitter keep key_header kind last limit max max_attempts max_depth
max_descendants max_waiting missed name names off only overlap pack packs parent pattern pause paused policy priority queue rate
ref refs replace retry role roles route routes rrule rule scope scopes seconds shared signature since source spread starts_at
status statuses task tasks tenant tenants timezone trigger undo unit unset until version waits_for_answer when_full when_spent
while_waiting workflow
"""
KEPT = frozenset(_KEPT.split())
"""The fields of a request, and the arguments of a command, that are recorded as they are. For all others the size is
recorded."""
SIZED = frozenset(
    {
        "changed",
        "code",
        "completes",
        "context",
        "current_password",
        "error",
        "fails",
        "key",
        "label",
        "labels",
        "param",
        "parameters",
        "params",
        "password",
        "payload",
        "response",
        "result",
        "run_context",
        "secret",
        "set_label",
        "value",
        "when",
        "window",
    }
)
"""Fields that may hold users' data, of which only the size is recorded. A test requires that each field of the API
and of the commands is in one of these sets."""
ADDRESSES = frozenset({"url"})
"""Fields of which the scheme, the host and the port are recorded. The rest of an address may be a password or a key."""
LONGEST_TEXT, MOST_ITEMS = 500, 100


def kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the audit records of these fields: values without secrets, and the sizes of all others."""
    return {name: _kept(name, value) for name, value in fields.items() if value is not None}


def _kept(name: str, value: Any) -> Any:
    if name in ADDRESSES and isinstance(value, str):
        return origin_of(value)
    if name in KEPT:
        return _bounded(value)
    return {"bytes": _size(value)}


def _bounded(value: Any) -> Any:
    match value:
        case Mapping():
            return kept({str(name): field for name, field in value.items()})
        case str():
            text = audited_change.stored_text(value[: LONGEST_TEXT + 1])
            return text if len(value) <= LONGEST_TEXT else text[:LONGEST_TEXT] + " ..."
        case bool() | int() | float():
            return value
        case list() | tuple() | set() | frozenset():
            items = [_bounded(item) for item in list(value)[:MOST_ITEMS]]
            return items if len(value) <= MOST_ITEMS else [*items, f"and {len(value) - MOST_ITEMS} more"]
    return None if value is None else audited_change.stored_text(cut_end(str(value), LONGEST_TEXT))


def _size(value: Any) -> int:
    text = (
        value
        if isinstance(value, str)
        else json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":"))
    )
    return len(text.encode("utf-8", "surrogatepass"))


def origin_of(address: str) -> str:
    """Return the scheme, the host and the port of an address."""
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname or ''}{port}"
    except ValueError:
        return "an address that cannot be read"


def seal_of(row: AuditedChange, previous: bytes) -> bytes:
    """Return the seal of a row after another seal, as `seal_audit` computes it in the database."""
    fields: Sequence[object] = (
        row.position,
        row.id,
        (row.at - EPOCH) // MICROSECOND,
        row.by,
        row.role,
        row.operation,
        row.target,
        row.outcome,
        row.reason,
        row.details,
    )
    text = b"".join(b"-" if f is None else _field(str(f).encode()) for f in fields)
    return hashlib.sha256(previous + text).digest()


def _field(value: bytes) -> bytes:
    return b"%d:%s" % (len(value), value)


@dataclass(frozen=True, slots=True)
class Head:
    """The seal of the chain at a position, as it was recorded elsewhere."""

    position: int
    seal: bytes

    @classmethod
    def read(cls, text: str) -> Head:
        """Parse a head such as 17:9f86d0... Raises InvalidInput for any other text."""
        position, _, seal = text.strip().partition(":")
        try:
            head = cls(int(position), bytes.fromhex(seal))
        except ValueError:
            head = cls(0, b"")
        if len(head.seal) != len(FIRST):
            raise InvalidInput(
                f"{text!r} is not a head of the audit",
                hint="Use the value that `penstock audit head` has printed.",
            )
        return head

    def __str__(self) -> str:
        return f"{self.position}:{self.seal.hex()}"


@dataclass(slots=True)
class Verified:
    """The outcome of a verification: the number of rows, and the faults, the first wrong row first. `head` is the end
    of the rows."""

    first: int
    last: int
    rows: int
    faults: list[str]
    head: Head | None = None
    unsealed: int = 0
    unsealed_for: float | None = None


MOST_FAULTS = 20
BEFORE_ALL = -(2**63)
"""A position before every possible row. A row before the first one was added by hand."""


class Verification:
    """A walk along a chain of rows. Each row is compared with its own seal, and with the seal of the row before."""

    def __init__(self, position: int, seal: bytes, heads: Iterable[Head] = ()) -> None:
        self._position, self._seal = position, seal
        self._heads = {head.position: head.seal for head in heads}
        self.result = Verified(position + 1, position, 0, [])
        self._check_head()

    def add(self, row: AuditedChange) -> None:
        """Check the next row."""
        self.result.rows += 1
        position = self._position + 1
        if row.position != position:
            self._fault(
                f"row {row.position} follows row {self._position}: rows between them are missing, or rows were added"
            )
            position = row.position or position
        if row.previous != self._seal:
            self._fault(
                f"row {position} is not linked to row {self._position}: it has the seal of another row as its link"
            )
        if row.seal != seal_of(row, row.previous or b""):
            self._fault(f"row {position} was changed: its seal does not match its content")
        self._position, self._seal = position, row.seal or b""
        self.result.last = position
        self._check_head()

    def end(self, head: Head) -> Verified:
        """Compare the end of the rows with the head of the chain. Return the outcome."""
        if (self._position, self._seal) != (head.position, head.seal):
            self._fault(
                f"the recorded end of the chain is row {head.position}, but the last row is "
                f"{self._position}: rows at the end are missing, were added or were changed"
            )
        return self.ended()

    def ended(self) -> Verified:
        """Return the outcome if the end of the chain is not known."""
        for position in sorted(self._heads):
            self._fault(f"the head {position} that you gave is not in the chain")
        self.result.head = Head(self._position, self._seal)
        return self.result

    def _check_head(self) -> None:
        noted = self._heads.pop(self._position, None)
        if noted is not None and noted != self._seal:
            self._fault(f"the seal of row {self._position} differs from the head that you gave")

    def _fault(self, text: str) -> None:
        if len(self.result.faults) < MOST_FAULTS:
            self.result.faults.append(text)


async def verify(session: Session, heads: Iterable[Head] = ()) -> Verified:
    """Verify the whole chain in the database. `heads` are seals that were recorded elsewhere and must be in the
    chain. One transaction reads everything, so that rows that are sealed or dropped meanwhile do not matter."""
    async with session.transaction() as tx:
        await tx.execute("set transaction isolation level repeatable read")
        chain = await audit.chain(tx)
        if chain is None:
            return Verified(1, 0, 0, ["the row with the end of the hash chain is missing"])
        kept_heads = [head for head in heads if head.position >= chain.dropped_position]
        walk = Verification(chain.dropped_position, chain.dropped_seal, kept_heads)
        async for row in audit.all_sealed(tx, BEFORE_ALL):
            walk.add(row)
        result = walk.end(Head(chain.position, chain.seal))
    result.faults += _faults_of_beginning(chain)
    result.unsealed, result.unsealed_for = chain.unsealed, chain.unsealed_for
    return result


def _faults_of_beginning(chain: Chain) -> list[str]:
    drop = orjson.loads(chain.dropped) if chain.dropped is not None else {"last": 0, "seal": FIRST.hex()}
    if (drop.get("last"), drop.get("seal")) == (chain.dropped_position, chain.dropped_seal.hex()):
        return []
    return [
        f"the chain begins after row {chain.dropped_position}, but the audit records that rows were "
        f"dropped up to {drop.get('last')}"
    ]


def verify_lines(lines: Iterable[bytes], heads: Iterable[Head] = ()) -> Verified:
    """Verify exported lines, which may begin anywhere in the chain. Raises InvalidInput for a line that is not a row of
    the audit."""
    walk: Verification | None = None
    noted = list(heads)
    for number, line in enumerate(lines, 1):
        row = _row_of(line, number)
        if walk is None:
            position, previous = row.position or 1, row.previous or b""
            walk = Verification(position - 1, previous, [h for h in noted if h.position >= position - 1])
        walk.add(row)
    return walk.ended() if walk else Verified(1, 0, 0, ["the file has no row"])


def _row_of(line: bytes, number: int) -> AuditedChange:
    try:
        document = orjson.loads(line)
        details = document["details"]
        return AuditedChange(
            **{
                **document,
                "at": datetime.fromisoformat(document["at"]),
                "details": details if isinstance(details, str) else audited_change.details_text(details),
                "previous": bytes.fromhex(document["previous"]),
                "seal": bytes.fromhex(document["seal"]),
            }
        )
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(
            f"line {number} is not a row of the audit: {error}",
            hint="Name a file that `penstock audit export` has written.",
        ) from None


def plain(row: AuditedChange) -> dict[str, Any]:
    """Return a row as it is exported and shown: details as a document, seals as hexadecimal digits."""
    return {
        **asdict(row),
        "at": row.at.astimezone(UTC).isoformat(),
        "details": orjson.loads(row.details),
        "previous": None if row.previous is None else row.previous.hex(),
        "seal": None if row.seal is None else row.seal.hex(),
    }


async def exported(
    session: Session, position: int, matching: audit.AuditFilter
) -> AsyncIterator[AuditedChange]:
    """Yield the sealed rows after a position of the chain."""
    async for row in audit.all_sealed(session, position, matching):
        yield row
