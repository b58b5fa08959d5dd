"""YAML packs: definitions without Python. A folder with a `pack.yaml`, or one file with several sections.

shop/pack.yaml              name, version, description; sections too, if you like
shop/actions/charge.yaml    one definition a file, named after it
shop/rules.yaml             or all of a kind in one file, by name
"""

from __future__ import annotations

from penstock.language.packs.pack_reader import read_file, read_folder

__all__ = ["read_file", "read_folder"]
