"""Definitions found in modules, files and packs, collected in one set, and checked against each other."""

from __future__ import annotations

from penstock.language.loading.collection import Definitions
from penstock.language.loading.load import load, load_all

__all__ = ["Definitions", "load", "load_all"]
