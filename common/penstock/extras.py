"""The parts of Penstock that need more than `pip install penstock`, which installs the client and the language of
definitions. Packages that use Penstock, such as `penstock-import`, are not among them: entry points name their parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from penstock.errors import MissingExtra

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
    missing = [extra for extra in extras if any(find_spec(module) is None for module in EXTRAS[extra])]
    if missing:
        raise _missing(missing)


@contextmanager
def needed() -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails and belongs to an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (missing := missing_extra(error)) is None:
            raise
        raise missing from None


def missing_extra(error: ModuleNotFoundError) -> MissingExtra | None:
    """Return the MissingExtra for a failed import, or None if it belongs to no extra."""
    module = (error.name or "").partition(".")[0]
    extras = [extra for extra, modules in EXTRAS.items() if module in modules]
    return _missing(extras) if extras else None


def missing_package(name: str) -> MissingExtra:
    """Return the error for a package that is not installed, such as `penstock-import`."""
    return MissingExtra(f"this needs what is not installed: pip install {name}")


def _missing(extras: list[str]) -> MissingExtra:
    return missing_package(f"'penstock[{','.join(extras)}]'")
