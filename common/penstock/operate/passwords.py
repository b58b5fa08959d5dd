"""Passwords of people: their bounds and their hashes, which are computed in threads of their own."""

from __future__ import annotations

import asyncio
import secrets
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from penstock.errors import InvalidInput
from penstock.operate.sign_in_queue import AT_ONCE

T = TypeVar("T")

SHORTEST, LONGEST = 12, 256
"""The shortest and the longest password, in characters."""
UNTYPED = frozenset({"Cc", "Zl", "Zp", "Cs"})
"""The categories of characters that no form sends in a password: controls, line breaks and lone surrogates."""


def checked(password: str) -> str:
    """Return a password that meets the bounds and can be typed into a form. Raises InvalidInput for any other
    password."""
    if not SHORTEST <= len(password) <= LONGEST:
        raise InvalidInput(
            f"a password has at least {SHORTEST} and at most {LONGEST} characters",
            hint="Three or four unrelated words make a good password.",
        )
    if any(unicodedata.category(character) in UNTYPED for character in password):
        raise InvalidInput(
            "a password must be one line of text, but this one has a line break or a control character",
            hint="Write the password once, on a single line, also into a pipe.",
        )
    return password


@cache
def hasher() -> PasswordHasher:
    """Return the hasher: Argon2id with the second recommendation of RFC 9106 (64 MiB, 3 passes, 4 lanes)."""
    return PasswordHasher()


@cache
def _nobodys() -> str:
    return hasher().hash(secrets.token_urlsafe(16))


def _fits(hashed: str | None, password: str) -> bool:
    try:
        return hasher().verify(hashed or _nobodys(), password)
    except (VerificationError, InvalidHashError):
        return False


async def matches(hashed: str | None, password: str) -> bool:
    """Return True if a password matches a hash. Without a hash it takes the same time, and returns False."""
    return await _in_thread(_fits, hashed, password)


async def hash_of(password: str) -> str:
    """Return the hash of a password, as it is stored."""
    return await _in_thread(hasher().hash, password)


async def _in_thread(work: Callable[..., T], *arguments: object) -> T:
    return await asyncio.get_running_loop().run_in_executor(_threads(), work, *arguments)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, "passwords")
