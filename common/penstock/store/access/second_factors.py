"""The rows of people's second factors. Their secrets are sealed in the table `secret`, under the name `totp:NAME` and
without a tenant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from penstock.store.session.database import Session, Transaction
from penstock.store.session.rows import first_as


@dataclass(frozen=True, slots=True)
class SecondFactor:
    """The second factor of the caller."""

    since: Annotated[
        datetime | None, Field(description="The instant since which it is required; null if it is not.")
    ]
    recovery_codes: Annotated[int, Field(description="The number of unused recovery codes.")]


STATE = """
select p.totp_since as since, (select count(*) from recovery_code r where r.person = p.id)::integer as recovery_codes
from person p where p.name = $1
"""


async def state(session: Session, name: str) -> SecondFactor | None:
    """Return the second factor of a person; None if the person does not exist."""
    return first_as(SecondFactor, await session.fetch(STATE, name))


HOLD_WITHOUT = "select id from person where name = $1 and totp_since is null for no key update"


async def hold_without(tx: Transaction, name: str) -> bool:
    """Lock a person without a second factor. Return False if the person has one, or is gone."""
    return bool(await tx.fetch(HOLD_WITHOUT, name))


CONFIRM = """
update person set totp_since = clock_timestamp(), totp_step = $2 where name = $1 returning id
"""
PUT_CODES = """
insert into recovery_code (person, digest)
select p.id, u.digest from person p, unnest($2::bytea[]) as u (digest) where p.name = $1
"""


async def confirm(tx: Transaction, name: str, step: int, codes: Sequence[bytes]) -> None:
    """Require the second factor from now on. The code of `step` cannot be used again. The caller has locked the
    person's row."""
    await tx.execute(CONFIRM, name, step)
    await tx.execute(PUT_CODES, name, list(codes))


USE_STEP = """
update person set totp_step = $2 where name = $1 and totp_since is not null and totp_step < $2 returning id
"""


async def use_step(tx: Transaction, name: str, step: int) -> bool:
    """Use up the code of a step. Return False if this or a later code was used before, so that one of two concurrent
    sign-ins fails."""
    return bool(await tx.fetch(USE_STEP, name, step))


USE_CODE = """
delete from recovery_code r using person p where r.person = p.id and p.name = $1 and r.digest = $2 returning p.id
"""


async def use_recovery_code(tx: Transaction, name: str, digest: bytes) -> bool:
    """Use up a recovery code. Return False if the person has none with this digest."""
    return bool(await tx.fetch(USE_CODE, name, digest))


OFF = """
with forgotten as (delete from secret where tenant = '' and name = 'totp:' || $1),
codes as (delete from recovery_code where person = (select id from person where name = $1))
update person p set totp_since = null, totp_step = 0 from (select id, totp_since from person where name = $1 for update) old
where p.id = old.id returning old.totp_since is not null as was_on
"""


async def turn_off(tx: Transaction, name: str) -> bool | None:
    """Delete the second factor of a person. Return whether it was required; None if the person does not exist."""
    rows = await tx.fetch(OFF, name)
    return rows[0]["was_on"] if rows else None
