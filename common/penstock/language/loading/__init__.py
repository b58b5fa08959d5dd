"""The loading of definitions from modules, files and packs into one set, and the check of their references to each
other."""

from __future__ import annotations

from penstock.language.loading.collection import Definitions
from penstock.language.loading.load import load, load_all

__all__ = ["Definitions", "load", "load_all"]
