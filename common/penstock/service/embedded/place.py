"""The location of a server's files: the requested folder, or one that the server's account can enter."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.service.embedded import account
from penstock.service.embedded.account import Account

FOR_ROOT = Path("/var/lib/penstock" if sys.platform == "linux" else "/usr/local/var/penstock")
# The kernel's limit for a socket's path is 107 bytes on Linux and 103 on macOS, the name included.
SOCKET_PATH_LIMIT = 103


@dataclass(frozen=True)
class Place:
    """The files of one server, all below `folder`, and the account that its processes run under."""

    folder: Path
    account: Account

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def log(self) -> Path:
        return self.folder / "server.log"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def users(self) -> Path:
        return self.folder / "users"

    @property
    def password(self) -> Path:
        return self.folder / "password"

    def socket_folder(self) -> Path | None:
        """Create and return a folder that only the account can enter; None if a socket's path would be too long.

        PostgreSQL and its drivers split such a path at commas, so a path with a comma cannot be used either.
        """
        folder = self.folder / "socket"
        if "," in str(folder) or len(os.fsencode(folder / ".s.PGSQL.5432.lock")) > SOCKET_PATH_LIMIT:
            return None
        shutil.rmtree(folder, ignore_errors=True)  # a killed server may have left its socket
        folder.mkdir(mode=0o700)
        self.account.own(folder)
        return folder


def find(folder: Path) -> Place:
    """Create `folder` if necessary and return the location of its server's files.

    Started by root, the server has an unprivileged account. A closed parent folder, such as /root, can keep that
    account from entering `folder`. Then the files are below FOR_ROOT, and a link in `folder` leads there. Raises
    ConfigurationError if the folder cannot be used at all.
    """
    folder = Path(os.path.abspath(folder))
    _make(folder)
    runner = account.for_server(folder / "data")
    if runner.reaches(folder):
        _check_owner(folder, runner)
        return Place(folder, runner)
    elsewhere = FOR_ROOT / f"{folder.name.lstrip('.')}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]}"
    _make(elsewhere)
    runner = account.for_server(elsewhere / "data")
    if not runner.reaches(elsewhere):
        raise ConfigurationError(
            f"PostgreSQL does not run as root, and no other user can enter {folder} or {elsewhere}.",
            hint="Choose a folder that every user may enter, or run Penstock as an ordinary user.",
        )
    link = folder / "elsewhere"
    if not link.is_symlink():
        link.symlink_to(elsewhere)
    return Place(elsewhere, runner)


def _make(folder: Path) -> None:
    """Create the missing folders of this path. Other users can pass through those of root, but not list them."""
    mode = 0o711 if os.geteuid() == 0 else 0o700
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        for path in reversed(missing):
            path.mkdir(exist_ok=True)
            path.chmod(mode)
        if os.geteuid() == 0 and folder.stat().st_uid == 0:
            folder.chmod(folder.stat().st_mode | 0o111)
    except OSError as error:
        raise ConfigurationError(
            f"The folder {folder} cannot be used: {error.strerror}.",
            hint="Choose a folder on a local disk that you may write to.",
        ) from error


def _check_owner(folder: Path, runner: Account) -> None:
    for path in (folder / "data", folder / "lock"):
        if runner.uid is None and path.exists() and path.stat().st_uid != os.geteuid():
            raise ConfigurationError(
                f"{path} belongs to another user (uid {path.stat().st_uid}).",
                hint="Run Penstock as the user who made it (root, perhaps), or choose another folder.",
            )
