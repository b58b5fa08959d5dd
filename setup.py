"""What pyproject.toml cannot say: migrations and examples go beside the code, under share/penstock."""

from pathlib import Path

from setuptools import setup

folders = [
    folder
    for top in ("migrations", "examples")
    for folder in (Path(top), *(path for path in Path(top).rglob("*") if path.is_dir()))
]
setup(
    data_files=[
        (
            f"share/penstock/{folder}",
            [str(file) for file in sorted(folder.glob("*.*")) if file.suffix != ".pyc"],
        )
        for folder in sorted(folders)
        if folder.name != "__pycache__"
    ]
)
