"""The playing of cases, one after the other, with one worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from penstock.errors import InvalidInput
from penstock.language.terms.options import did_you_mean
from penstock.testing.worker_conformance.cases import CASES, OF_GATEWAYS
from penstock.testing.worker_conformance.surroundings import HandedBack, Surroundings, surroundings

LONGEST_S = 300.0
"""Seconds that a case may take."""
TRIES = 3
"""The number of times that a case is played at most, if its worker hands back attempts."""
SHORT = (
    *(
        "result_object",
        "result_odd_names",
        "result_integers_of_64_bits",
        "failure_is_retried",
        "deferral_carries_state",
        "log_lines_in_order",
    ),
    *("cancelled_in_the_midst", "take_lose_answer", "finish_lose_answer", "answers_with_unknown_fields"),
    *("gateway_is_killed_in_the_midst", "worker_is_killed", "drain_lets_work_end"),
)
"""The cases of a short run."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a case. `fault` says what was wrong, and is None if the worker conforms. `not_applicable` is the reason why
    the case was not played, or None."""

    name: str
    seconds: float
    fault: str | None
    not_applicable: str | None = None


def chosen(only: Sequence[str], *, short: bool = False) -> list[str]:
    """Return the names of the cases to play. Raises InvalidInput for an unknown name."""
    for name in only:
        if name not in CASES:
            raise InvalidInput(f"there is no case {name!r}", hint=did_you_mean(name, list(CASES)))
    return [name for name in CASES if name in (only or (SHORT if short else CASES))]


async def play(
    command: Sequence[str], names: Sequence[str], broker: str | None = None, *, direct: bool = False
) -> AsyncIterator[Verdict]:
    """Play these cases with the worker of a command. Yield the verdict of each. `direct`: the worker has a session with the
    database instead of a gateway."""
    async with surroundings(command, broker, direct=direct) as house:
        for name in names:
            if direct and name in OF_GATEWAYS:
                yield Verdict(name, 0.0, None, OF_GATEWAYS[name])
                continue
            began = time.monotonic()
            fault = await fault_in(house, name)
            yield Verdict(name, time.monotonic() - began, fault)


async def fault_in(house: Surroundings, name: str) -> str | None:
    """Play a case, and again if its worker hands an attempt back. Return what the worker did wrong, or None."""
    for _ in range(TRIES):
        try:
            return await _fault(house, name)
        except HandedBack as error:
            fault = str(error)
    return fault


async def _fault(house: Surroundings, name: str) -> str | None:
    """Play a case once. Return what the worker did wrong. Raises HandedBack if the worker handed an attempt back before
    it had begun."""
    conforms = False
    try:
        async with asyncio.timeout(LONGEST_S):
            await house.only_worker()
            await CASES[name](house)
        conforms = True
        return None
    except HandedBack:
        raise
    except AssertionError as error:
        return str(error) or "a promise was broken"
    except Exception as error:
        return f"{type(error).__name__}: {error}".rstrip(": ")
    finally:
        house.proxy.clear()
        house.network.mend()
        if not conforms:  # the next case begins with another worker
            await house.end_workers()
