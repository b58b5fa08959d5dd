"""The version, which is Penstock's own, and the dependencies, which include Penstock in this version."""

import tomllib
from pathlib import Path

from setuptools import setup

penstock = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
version = penstock["version"]
setup(
    version=version, install_requires=[f"penstock[services]=={version}", "ray[client]>=2.50,<3", "structlog"]
)
