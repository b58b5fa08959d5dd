"""The account under which the server runs. PostgreSQL refuses to run as root, so root gives it an unprivileged uid.

No system user is created: the server itself accepts a uid without a name. Only `initdb` looks its user up, so it runs
under an existing one (`nobody`) for a second.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.errors import ConfigurationError

# Debian reserves 60000-64999 for central assignment. systemd's dynamic users begin at 61184, and have a name while
# they exist. So the first uid in this range without a name is free.
NAMELESS_UIDS = range(64200, 64700)
NAMED_USERS = ("nobody", "daemon", "postgres")


@dataclass(frozen=True)
class Account:
    """A uid and gid to run under. Both are None for the current user."""

    uid: int | None = None
    gid: int | None = None

    @property
    def spawn(self) -> dict[str, Any]:
        """Arguments for subprocess that start a program under this account, without other groups."""
        if self.uid is None:
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def own(self, path: Path) -> None:
        """Make this account the owner of `path` and everything below it. Do nothing for the current user."""
        if self.uid is None or self.gid is None:
            return
        os.chown(path, self.uid, self.gid, follow_symlinks=False)
        for folder, folders, files in os.walk(path):
            for name in folders + files:
                os.chown(os.path.join(folder, name), self.uid, self.gid, follow_symlinks=False)

    def reaches(self, folder: Path) -> bool:
        """Return True if this account can enter `folder`. A shell tries it, which takes ACLs and mounts into account."""
        entered = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$1"', "sh", folder], capture_output=True, **self.spawn
        )
        return entered.returncode == 0

    def executes(self, program: Path) -> bool:
        """Return True if this account can run `program` and load its libraries."""
        try:
            return subprocess.run([program, "-V"], capture_output=True, **self.spawn).returncode == 0
        except OSError:
            return False


def for_server(data: Path) -> Account:
    """Return the account for the server of this data folder: the folder's owner if it exists, otherwise a free uid."""
    if os.geteuid() != 0:
        return Account()
    if data.is_dir() and (owner := data.stat()).st_uid != 0:
        return Account(owner.st_uid, owner.st_gid)
    for uid in NAMELESS_UIDS:
        if _is_mapped(uid) and not _has_name(uid):
            return Account(uid, uid)
    raise _no_account()


def for_initdb() -> Account:
    """Return an account that can create a data folder: one with a name, since `initdb` looks it up."""
    if os.geteuid() != 0:
        return Account()
    users = {user.pw_name: user for user in pwd.getpwall()}
    for name in (*NAMED_USERS, *users):
        user = users.get(name)
        if user is not None and user.pw_uid > 0 and _is_mapped(user.pw_uid):
            return Account(user.pw_uid, user.pw_gid)
    raise _no_account()


def _no_account() -> ConfigurationError:
    return ConfigurationError(
        "Running as root, and no unprivileged uid is available here to run PostgreSQL under.",
        hint="Run Penstock as an ordinary user, or set PENSTOCK_DATABASE_URL to a running server.",
    )


def _has_name(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _is_mapped(uid: int) -> bool:
    """Return True if this uid can be used. In a user namespace (a rootless container) only some can."""
    try:
        lines = Path("/proc/self/uid_map").read_text().splitlines()
    except OSError:
        return True
    ranges = [tuple(map(int, line.split())) for line in lines]
    return any(inside <= uid < inside + count for inside, _, count in ranges)
