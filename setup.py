"""What pyproject.toml cannot say: every folder of migrations goes beside the code, under share/penstock."""

from pathlib import Path

from setuptools import setup

folders = [Path("migrations"), *(path for path in Path("migrations").rglob("*") if path.is_dir())]
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
