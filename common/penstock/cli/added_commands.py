"""The groups of commands that other packages add. An entry point of the group `penstock.commands` has the name of the
group of commands, and loads its `typer.Typer`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from importlib.metadata import EntryPoint, entry_points

import typer

from penstock.errors import ConfigurationError
from penstock.extras import install_package, missing_package

ENTRY_POINTS = "penstock.commands"
PACKAGES: Mapping[str, str] = {"import": "penstock-import"}
"""Our own packages that add commands, by command. If a package is missing, its command says what to install."""


def add_to(app: typer.Typer, ours: Collection[str]) -> None:
    """Add the commands of installed packages. Raises ConfigurationError if a package adds a command that
    Penstock has, or cannot be loaded."""
    installed = entry_points(group=ENTRY_POINTS)
    for entry in installed:
        if entry.name in ours:
            raise ConfigurationError(
                f"the package {_package(entry)} adds the command {entry.name!r}, but Penstock has a command of this name",
                hint=f"Uninstall the package: pip uninstall {_package(entry)}.",
            )
        app.add_typer(_loaded(entry), name=entry.name)
    for command, package in PACKAGES.items():
        if command not in installed.names:
            _add_missing(app, command, package)


def names() -> set[str]:
    """Return the names of the groups that packages add, and of those that our own packages would add."""
    return {*PACKAGES, *entry_points(group=ENTRY_POINTS).names}


def _loaded(entry: EntryPoint) -> typer.Typer:
    try:
        group = entry.load()
    except Exception as error:
        raise _unusable(entry, str(error) or type(error).__name__) from error
    if not isinstance(group, typer.Typer):
        raise _unusable(entry, f"{entry.value} is not a typer.Typer")
    return group


def _add_missing(app: typer.Typer, command: str, package: str) -> None:
    @app.command(
        command,
        help=f"Not installed: {install_package(package)}",
        rich_help_panel="Added by packages",
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    )
    def missing() -> None:
        raise missing_package(package)


def _unusable(entry: EntryPoint, reason: str) -> ConfigurationError:
    package = _package(entry)
    return ConfigurationError(
        f"the command {entry.name!r} of the package {package} cannot be loaded: {reason}",
        hint=f"Install a version of {package} that works with this version of Penstock, or uninstall the package.",
    )


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else entry.value
