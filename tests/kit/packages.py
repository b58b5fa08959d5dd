"""Small packages with an entry point, as pip would have installed them."""

from __future__ import annotations

from pathlib import Path


def write_package(folder: Path, name: str, code: str, group: str, entry: str) -> None:
    """Write a package of one module into a folder of `sys.path`. It has this entry point, such as `stock = acme:app`."""
    (folder / f"{name}.py").write_text(code)
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[{group}]\n{entry}\n")
