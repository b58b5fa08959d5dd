"""The parts of Penstock that need more than its installation without extras, which has the client and the language of
definitions. Packages that use Penstock, such as `penstock-import`, are not among them: entry points name their parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.errors import MissingExtra

PLACEHOLDER = "/path/to/penstock"
"""The clone of the repository in a command, where it is not known."""
EXTRAS = {
    "rabbitmq": ("aio_pika", "aiormq", "pamqp", "yarl"),
    "cli": (
        "alembic",
        "cryptography",
        "dateutil",
        "prometheus_client",
        "rich",
        "sqlalchemy",
        "typer",
        "yaml",
    ),
    "services": ("aiohttp", "uvloop"),
    "embedded": ("psutil", "watchfiles"),
    "api": ("argon2", "authlib", "fastapi", "httptools", "joserfc", "uvicorn"),
    "notify": ("apprise",),
    "store": ("fsspec",),
    "parquet": ("pyarrow",),
}
"""For each extra of pyproject.toml, the modules of its libraries that Penstock imports. PostgreSQL's own programs are
not among them, since this machine's may serve as well. Every worker has the libraries of the task executor for
Kubernetes."""


def require(*extras: str) -> None:
    """Raise MissingExtra for all of these extras that are missing."""
    absent = [extra for extra in extras if any(find_spec(module) is None for module in EXTRAS[extra])]
    if absent:
        raise missing(absent)


@contextmanager
def needed() -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails and belongs to an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (explained := missing_extra(error)) is None:
            raise
        raise explained from None


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """Return the MissingExtra for a failed import, or None if it belongs to no extra."""
    module = (error.name or "").partition(".")[0]
    extras = [extra for extra, modules in EXTRAS.items() if module in modules]
    return missing(extras) if extras else None


def missing_package(name: str) -> MissingExtra:
    """Return the error for one of our packages that is not installed, such as `penstock-import`."""
    return _missing_line(install_package(name))


def missing(extras: list[str]) -> MissingExtra:
    """Return the error for extras that lack their libraries."""
    return _missing_line(install_extras(*extras))


def install_extras(*extras: str) -> str:
    """Return the command that installs Penstock with these extras, from the clone that it was installed from. The project
    `penstock` on the package index is another one."""
    return f"pip install '{_clone()}[{','.join(extras)}]'"


def install_package(name: str) -> str:
    """Return the command that installs one of the packages in the clone's folder `extras`."""
    return f"pip install '{_clone()}/extras/{name}'"


def _clone() -> str:
    """Return the folder that Penstock was installed from, as pip has recorded it (PEP 610), or a placeholder."""
    try:
        recorded = json.loads(distribution("penstock").read_text("direct_url.json") or "{}")
        url = urlsplit(recorded.get("url", ""))
    except (PackageNotFoundError, ValueError):
        return PLACEHOLDER
    folder = Path(unquote(url.path))
    return str(folder) if url.scheme == "file" and (folder / "pyproject.toml").is_file() else PLACEHOLDER


def _missing_line(command: str) -> MissingExtra:
    placeholder = f" ({PLACEHOLDER} is a clone of its repository)" if PLACEHOLDER in command else ""
    return MissingExtra(f"this needs what is not installed: {command}{placeholder}")
