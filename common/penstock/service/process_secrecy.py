"""The protection of our credentials from other processes and from imported code. The credentials are removed from the
environment of a service before it imports code of its users. Other processes of the same user may not read its memory.
Code in the same process can still find them there: SECURITY.md explains what prevents that."""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import unquote

from pydantic import SecretStr

from penstock.language.terms.redaction import SHORTEST
from penstock.settings import Settings

SECRETS = frozenset(
    {
        *(
            f"PENSTOCK_{name.upper()}"
            for name, field in Settings.model_fields.items()
            if field.annotation == SecretStr | None
        ),
        "PENSTOCK_TOKEN",
    }
)
"""The names of our variables that hold secrets."""
PR_SET_DUMPABLE = 4
STRONG = 8
"""The length in characters from which a password that mixes letters with others is masked wherever it stands."""
ENV_START, ENV_END = 47, 48
"""The fields of /proc/self/stat with the bounds of the environment, counted from the one after the program's name."""


def without_secrets(variables: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for another program, without our credentials."""
    return {name: value for name, value in variables.items() if name not in SECRETS}


def forget_secrets() -> None:
    """Remove our credentials from this process's environment, also from what the kernel shows to others. Call it in a
    service that has read its settings."""
    present = [name for name in SECRETS if name in os.environ]
    values = [os.environ.pop(name) for name in present]
    if sys.platform == "linux":
        with suppress(OSError, ValueError, IndexError):
            _erase([value.encode() for value in values])
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def credentials(settings: Settings) -> set[str]:
    """Return the texts of the settings that no output may show: passwords of servers, master keys and the like.

    Outputs are data, in which a password such as `worker` or `2024` may stand by chance. Such a password is masked only in an
    address, between a user name and `@`."""
    urls = [settings.database_url, settings.database_read_url, settings.broker_url]
    texts: set[str] = set()
    for url in filter(None, urls):
        for address in re.split(r",(?=\w+://)", url.get_secret_value()):
            user, colon, password = address.partition("://")[2].rpartition("@")[0].partition(":")
            passwords = {password} if colon and password else set()
            passwords |= set(re.findall(r"[?&]password=([^&]+)", address))
            for text in passwords:
                for form in (text, unquote(text)):
                    texts |= (
                        {form}
                        if _is_strong(form) and text != user
                        else {f"{user}:{form}@", f"password={form}"}
                    )
    for secret in (settings.secrets_key, settings.oidc_client_secret):
        if secret is not None:
            texts |= {text.strip() for text in secret.get_secret_value().split(",")}
    if settings.secrets_key_file is not None:
        with suppress(OSError, ValueError):
            texts |= set(settings.secrets_key_file.read_text("ascii").split())
    return {text for text in texts if len(text) >= SHORTEST}


def _is_strong(password: str) -> bool:
    """Return False for a password that may be a word, a name or a number in the data of an action."""
    if len(password) < STRONG:
        return False
    return len(password) >= 2 * STRONG or not (password.isalpha() or password.isdigit())


@contextmanager
def hidden_secrets() -> Iterator[None]:
    """Remove our credentials from the environment while code of users is imported, and restore them afterwards."""
    secrets = {name: os.environ.pop(name) for name in SECRETS if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(secrets)


def _erase(values: list[bytes]) -> None:
    """Overwrite these values in the initial memory block of the environment, which /proc/PID/environ shows. No
    variable uses that memory any more once it is unset."""
    with open("/proc/self/stat", "rb") as stat:
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[ENV_START]), int(fields[ENV_END])
    if not 0 < start < end:
        return
    block = ctypes.string_at(start, end - start)
    for value in filter(None, values):
        at = block.find(b"=" + value + b"\0")
        while at >= 0:
            ctypes.memset(start + at + 1, ord("*"), len(value))
            at = block.find(b"=" + value + b"\0", at + 1)
