"""The check of Penstock, Python and the libraries on this machine."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, entry_points, version

from penstock.extras import install_extras
from penstock.operate.doctor.finding import Finding, bad, ok

LIBRARIES = ("asyncpg", "aio-pika", "pydantic", "SQLAlchemy", "uvloop")


def findings() -> list[Finding]:
    services = sorted(entry.name for entry in entry_points(group="penstock.services"))
    return [
        ok("penstock", f"{version('penstock')}, with the services {', '.join(services)}")
        if services
        else bad(
            "penstock",
            "no service is installed",
            f"Install it again: `{install_extras('all')}`.",
        ),
        ok("python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
        ok("libraries", ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)),
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "missing"
