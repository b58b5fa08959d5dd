"""The installation of missing servers as root on Debian or Ubuntu, without starting them as system services."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.servers.errors import NoServer

# invoke-rc.d asks this program whether a package may start its service: 101 means no.
POLICY = Path("/usr/sbin/policy-rc.d")
SAVED = POLICY.with_name("policy-rc.d.before-penstock-tests")
ENV = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
DEADLINE = 600  # seconds


def can_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(package: str, *, there: Callable[[], object]) -> None:
    """Install one package with its dependencies, unless `there()` finds that another run has done so meanwhile.

    Raises NoServer with apt's last words.
    """
    with _alone():
        if not there():
            _install(package)


def _install(package: str) -> None:
    print(f"installing {package} with apt-get ...", flush=True)
    with _no_services():
        installed = _apt("install", "-y", "--no-install-recommends", package)
        if installed.returncode != 0:  # the lists of a fresh image are empty or old
            _apt("update")
            installed = _apt("install", "-y", "--no-install-recommends", package)
    if installed.returncode != 0:
        raise NoServer(f"apt-get install {package} failed:\n{installed.stdout[-1500:]}")


def _apt(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | ENV,
        timeout=DEADLINE,
    )


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """One run at a time writes into the folder of the policy."""
    folder = os.open(POLICY.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


@contextlib.contextmanager
def _no_services() -> Iterator[None]:
    """Forbid packages to start services, then put back what was there, also from before a crash."""
    if POLICY.exists() and not SAVED.exists():
        POLICY.rename(SAVED)
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
        if SAVED.exists():
            SAVED.rename(POLICY)
